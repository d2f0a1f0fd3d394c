import { jsonText, type Path, pairsOf, withAt } from "./json.ts";
import type { Shot } from "./shot.ts";

/** Attempts at a smaller one: each is a request or a round of them. */
const maxAttempts = 120;

/** The fewest of these that still do it, by halves; empty: they do it no more. */
export async function guilty(
  shots: readonly Shot[],
  does: (some: readonly Shot[]) => Promise<boolean>,
): Promise<readonly Shot[]> {
  let left = shots;
  if (!(await does(left))) return [];
  while (left.length > 1) {
    const half = Math.ceil(left.length / 2);
    const [first, second] = [left.slice(0, half), left.slice(half)];
    if (await does(first)) left = first;
    else if (await does(second)) left = second;
    else return left;
  }
  return left;
}

/** The same request with less in it, as long as `does` says that it still shows what it showed. */
export async function smaller(shot: Shot, does: (shot: Shot) => Promise<boolean>): Promise<Shot> {
  let best = shot;
  let attempts = maxAttempts;
  if (!(await does(shot))) return shot; // it showed only then
  for (let again = true; again && attempts > 0; ) {
    again = false;
    for (const next of simpler(best)) {
      if (attempts-- <= 0) break;
      if (!(await does(next))) continue;
      best = next;
      again = true;
      break;
    }
  }
  return best;
}

function* simpler(shot: Shot): Generator<Shot> {
  if (shot.raw !== undefined) return;
  for (const name of Object.keys(shot.headers)) {
    const { [name]: _dropped, ...headers } = shot.headers;
    yield { ...shot, headers };
  }
  const [path = "", query] = shot.target.split(/\?(.*)/s, 2);
  const fields = query === undefined ? [] : query.split("&");
  for (let k = 0; k < fields.length; k++) {
    const rest = fields.filter((_field, n) => n !== k).join("&");
    yield { ...shot, target: rest === "" ? path : `${path}?${rest}` };
  }
  if (shot.body === undefined || !("text" in shot.body)) return;
  let json: unknown;
  try {
    json = JSON.parse(shot.body.text);
  } catch {
    return;
  }
  for (const place of placesIn(json)) {
    for (const put of [undefined, 1, "a"]) {
      const text = jsonText(withAt(json, place, put));
      if (text.length < shot.body.text.length) yield { ...shot, body: { text } };
    }
  }
}

/** Those of large things first. */
function placesIn(json: unknown, path: Path = []): Path[] {
  const inner = Array.isArray(json)
    ? json.slice(0, 20).map((one, k) => [k, one] as const)
    : (pairsOf(json) ?? []).slice(0, 20);
  const here = inner.map(([step]) => [...path, step] as const);
  return [...here, ...inner.flatMap(([step, one]) => placesIn(one, [...path, step]))];
}
