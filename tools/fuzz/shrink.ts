import { jsonText, type Path, pairsOf, withAt } from "./json.ts";
import type { Shot } from "./shot.ts";

/** Limit of attempts; each sends a request. */
const maxAttempts = 120;

/** Halves the requests as long as `reproduces` is true; empty: not even all of them reproduce it. */
export async function fewest(
  shots: readonly Shot[],
  reproduces: (some: readonly Shot[]) => Promise<boolean>,
): Promise<readonly Shot[]> {
  let remaining = shots;
  if (!(await reproduces(remaining))) return [];
  while (remaining.length > 1) {
    const half = Math.ceil(remaining.length / 2);
    const [first, second] = [remaining.slice(0, half), remaining.slice(half)];
    if (await reproduces(first)) remaining = first;
    else if (await reproduces(second)) remaining = second;
    else return remaining;
  }
  return remaining;
}

/** Removes parts of the request as long as `reproduces` is true. */
export async function smaller(shot: Shot, reproduces: (shot: Shot) => Promise<boolean>): Promise<Shot> {
  let best = shot;
  let attempts = maxAttempts;
  if (!(await reproduces(shot))) return shot; // not reproducible
  for (let progress = true; progress && attempts > 0; ) {
    progress = false;
    for (const next of simpler(best)) {
      if (attempts-- <= 0) break;
      if (!(await reproduces(next))) continue;
      best = next;
      progress = true;
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
  for (const spot of pathsIn(json)) {
    for (const value of [undefined, 1, "a"]) {
      const text = jsonText(withAt(json, spot, value));
      if (text.length < shot.body.text.length) yield { ...shot, body: { text } };
    }
  }
}

/** Paths of large values first. */
function pathsIn(json: unknown, path: Path = []): Path[] {
  const inner = Array.isArray(json)
    ? json.slice(0, 20).map((one, k) => [k, one] as const)
    : (pairsOf(json) ?? []).slice(0, 20);
  const here = inner.map(([step]) => [...path, step] as const);
  return [...here, ...inner.flatMap(([step, one]) => pathsIn(one, [...path, step]))];
}
