/**
 * Encrypted payloads in responses of the server. The user's own codec endpoint decodes them, called from this page with
 * the browser's credentials for it; the server never sees the result. Without an endpoint they read
 * `{ "encrypted": KEY }`.
 */

interface SealedFields {
  readonly key: string;
  readonly place: string;
  readonly data: string;
}

type Json = Record<string, unknown>;
/** Puts the decoded value in the place of an encrypted one. */
type Put = (value: unknown) => void;

/** Decoded payloads by ciphertext: pages are fetched again every few seconds. */
const known = new Map<string, unknown>();
const maxKnown = 5_000;
/** The endpoint takes as many in one call. */
const maxAtOnce = 500;

let endpoint: { readonly url: string; readonly tenant: string } | undefined;

/** From the server's answer about this session. */
export function setCodecEndpoint(url: string | undefined, tenant: string): void {
  endpoint = url === undefined ? undefined : { url: url.replace(/\/+$/, ""), tenant };
}

/** The response with its payloads decoded, as far as the endpoint does. */
export async function opened<T>(response: T): Promise<T> {
  const found: { readonly sealed: SealedFields; readonly put: Put }[] = [];
  const holder = { response: response as unknown };
  find(holder, found);
  if (found.length === 0) return response;
  const missing = [...new Map(found.map(({ sealed }) => [sealed.data, sealed])).values()].filter(
    ({ data }) => !known.has(data),
  );
  for (let k = 0; k < missing.length; k += maxAtOnce) await decodeSome(missing.slice(k, k + maxAtOnce));
  for (const { sealed, put } of found) put(known.has(sealed.data) ? known.get(sealed.data) : { encrypted: sealed.key });
  return holder.response as T;
}

async function decodeSome(some: readonly SealedFields[]): Promise<void> {
  const payloads = (await post("decode", { payloads: some })) ?? [];
  for (const [k, answer] of payloads.entries()) {
    const { data } = some[k] ?? {};
    if (data === undefined || typeof answer !== "object" || answer === null || !("value" in answer)) continue;
    if (known.size >= maxKnown) known.delete(known.keys().next().value!);
    known.set(data, answer.value);
  }
}

/** What the user sends to a run, encrypted by the endpoint if there is one. */
export async function sealedFor(run: string, value: unknown): Promise<unknown> {
  if (endpoint === undefined || value === undefined) return value;
  const [answer] = (await post("encode", { run, payloads: [value] })) ?? [];
  if (typeof answer === "object" && answer !== null && "value" in answer) return answer.value;
  throw new Error("the codec endpoint did not encrypt the value, so it was not sent");
}

async function post(action: "decode" | "encode", body: object): Promise<unknown[] | undefined> {
  if (endpoint === undefined) return undefined;
  const { url, tenant } = endpoint;
  try {
    const response = await fetch(`${url}/${action}`, {
      method: "POST",
      credentials: "include",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ tenant, ...body }),
    });
    const { payloads } = (response.ok ? await response.json() : {}) as { payloads?: unknown };
    return Array.isArray(payloads) ? payloads : undefined;
  } catch {
    return undefined; // unreachable, or it does not allow this page: payloads stay encrypted
  }
}

/** Collects the encrypted payloads below a node, each with how to replace it. */
function find(node: unknown, found: { readonly sealed: SealedFields; readonly put: Put }[]): void {
  if (typeof node !== "object" || node === null) return;
  for (const [key, child] of Object.entries(node)) {
    const parent = node as Json;
    if (typeof child === "string") findInText(parent, key, child, found);
    else if (typeof child === "object" && child !== null) {
      if (!Array.isArray(child) && "$codec" in child) findInEnvelope(child as Json, found);
      else find(child, found);
    }
  }
}

/** Rows hold some payloads as text of the same form. */
function findInText(parent: Json, key: string, text: string, found: Parameters<typeof find>[1]): void {
  if (!text.includes('"sealed"') || !text.startsWith("{")) return;
  let holder: Json;
  try {
    holder = { value: JSON.parse(text) as unknown };
  } catch {
    return;
  }
  const before = found.length;
  find(holder, found);
  // Written back as text once everything below it is in place.
  for (let k = before; k < found.length; k++) {
    const { sealed, put } = found[k]!;
    const putBoth = (value: unknown): void => {
      put(value);
      parent[key] = JSON.stringify(holder.value);
    };
    found[k] = { sealed, put: putBoth };
  }
}

function findInEnvelope(envelope: Json, found: Parameters<typeof find>[1]): void {
  if (envelope.$codec === "text" && typeof envelope.data === "string") {
    findInText(envelope, "data", envelope.data, found);
    return;
  }
  const types = (envelope.types ?? {}) as Record<string, unknown>;
  for (const [path, type] of Object.entries(types)) {
    if (type !== "sealed") continue;
    const keys = path
      .split("/")
      .slice(1)
      .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    let [place, name]: [Json, string] = [envelope, "data"];
    for (const next of keys) [place, name] = [place[name] as Json, next];
    const sealed = place?.[name] as SealedFields | undefined;
    if (typeof sealed?.data !== "string") continue;
    const put: Put = (value) => {
      place[name] = isEnvelope(value) ? value.data : value;
      delete types[path];
    };
    found.push({ sealed, put });
  }
}

const isEnvelope = (value: unknown): value is { readonly data: unknown } =>
  typeof value === "object" && value !== null && "$codec" in value && "data" in value;
