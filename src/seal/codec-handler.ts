import { decode, fromJson, isSealed, SealedPayload, sealedFault, toJson } from "../base/codec.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { defaultLimits } from "../model/limits.ts";
import type { PayloadCodec } from "./payload-codec.ts";
import { PayloadCoder, runPlace } from "./payload-coder.ts";

/** What a caller wants to read or write, for {@link CodecHandlerOptions.authorize}. */
export interface CodecRequest {
  /** Whether the caller wants to read or to write. */
  readonly action: "decode" | "encode";
  readonly tenant: string;
  /** The owners of the payloads, such as `run:pay-7`. */
  readonly places: readonly string[];
}

/** Who may call a codec endpoint, and from which pages. */
export interface CodecHandlerOptions {
  /** Whether the request may read these payloads: check its cookie or header as your other services do. */
  readonly authorize: (request: Request, about: CodecRequest) => boolean | Promise<boolean>;
  /** Origins of dashboards that may call it, such as `https://tape.example`. Others get no answer from a browser. */
  readonly origins: readonly string[];
}

/** More than a page of the dashboard has. */
const maxPayloads = 1_000;
const maxBytes = 16 * 1024 * 1024;

/**
 * An endpoint that decodes payloads for the dashboard, in a service of yours that has the keys. The browser calls it
 * with its own credentials; the server of Tape never does. `POST …/decode` and `POST …/encode`.
 *
 * @example
 * const handle = codecHandler(codec, { origins: ["https://tape.example"], authorize: (request) => isSignedIn(request) });
 * // Hono: app.all("/codec/*", (c) => handle(c.req.raw))
 */
export function codecHandler(
  codec: PayloadCodec,
  options: CodecHandlerOptions,
): (request: Request) => Promise<Response> {
  const { authorize, origins } = options ?? {};
  if (typeof authorize !== "function" || !Array.isArray(origins)) {
    const message = "codecHandler: pass authorize and origins: without them every caller could read every payload";
    throw new TapeError("TAPE_BAD_INPUT", message, {
      field: typeof authorize === "function" ? "origins" : "authorize",
    });
  }
  const coder = new PayloadCoder(codec, undefined, defaultLimits);
  return async (request) => {
    const origin = request.headers.get("origin");
    if (origin !== null && !origins.includes(origin)) return response(403, { error: "this origin may not call" });
    const headers = corsHeaders(origin);
    if (request.method === "OPTIONS") return new Response(null, { status: 204, headers });
    try {
      return response(200, await answer(coder, request, authorize), headers);
    } catch (error) {
      const status = error instanceof Refusal ? error.status : 500;
      return response(status, { error: error instanceof Refusal ? error.message : "the codec failed" }, headers);
    }
  };
}

class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

async function answer(
  coder: PayloadCoder,
  request: Request,
  authorize: CodecHandlerOptions["authorize"],
): Promise<{ readonly payloads: unknown[] }> {
  const action = /\/(decode|encode)\/?$/.exec(new URL(request.url).pathname)?.[1] as CodecRequest["action"] | undefined;
  if (request.method !== "POST" || action === undefined) throw new Refusal(404, "POST …/decode or …/encode");
  // A page of another origin cannot send this type without a preflight, which is refused.
  if (!/^application\/json\b/.test(request.headers.get("content-type") ?? "")) throw new Refusal(415, "send JSON");
  const body = parsed(await textOf(request));
  const { tenant, payloads, run } = body;
  if (typeof tenant !== "string" || !Array.isArray(payloads)) throw new Refusal(400, "tenant and payloads are missing");
  if (payloads.length > maxPayloads) throw new Refusal(413, `at most ${maxPayloads} payloads`);
  if (action === "encode") {
    if (typeof run !== "string" || run === "") throw new Refusal(400, "run is missing");
    await assertAllowed(authorize, request, { action, tenant, places: [runPlace(run)] });
    return { payloads: await Promise.all(payloads.map((json) => encoded(coder, tenant, run, json))) };
  }
  const sealed = payloads.map(sealedOf);
  const places = [...new Set(sealed.map(({ place }) => place))];
  await assertAllowed(authorize, request, { action, tenant, places });
  return { payloads: await Promise.all(sealed.map((one) => decoded(coder, tenant, one))) };
}

async function assertAllowed(
  authorize: CodecHandlerOptions["authorize"],
  request: Request,
  about: CodecRequest,
): Promise<void> {
  if ((await authorize(request, about)) !== true) throw new Refusal(403, "not allowed");
}

/** A payload that cannot be decoded does not hide the others. */
async function decoded(coder: PayloadCoder, tenant: string, sealed: SealedPayload): Promise<unknown> {
  const at = { tenant, kind: "shown", field: "shown", places: [sealed.place] };
  try {
    const value = await coder.open(sealed, at);
    if (isSealed(value)) return { error: value.problem?.code ?? "TAPE_KEY_UNKNOWN" };
    return { value: toJson(value) };
  } catch (error) {
    return { error: isTapeError(error) ? error.code : "TAPE_CODEC_FAILED" };
  }
}

async function encoded(coder: PayloadCoder, tenant: string, run: string, json: unknown): Promise<unknown> {
  const context = { tenant, kind: "signal.sent", field: "value", place: runPlace(run), run };
  return { value: toJson(await coder.seal(fromJson(json), context)) };
}

function sealedOf(json: unknown): SealedPayload {
  const fields = (json ?? {}) as Record<string, unknown>;
  const { key, place, data } = fields;
  const fault = sealedFault({ key, place, data });
  if (fault !== undefined) throw new Refusal(400, `a payload is malformed: ${fault}`);
  return new SealedPayload({ key: key as string, place: place as string, data: data as string });
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value = decode(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // as below
  }
  throw new Refusal(400, "the body is not a JSON object");
}

/** Stops reading at the limit, whatever the length that the caller has announced. */
async function textOf(request: Request): Promise<string> {
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw new Refusal(413, "the body is too large");
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > maxBytes) throw new Refusal(413, "the body is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function corsHeaders(origin: string | null): Record<string, string> {
  if (origin === null) return {};
  return {
    "access-control-allow-origin": origin,
    "access-control-allow-credentials": "true",
    "access-control-allow-headers": "content-type, authorization",
    "access-control-allow-methods": "POST",
    "access-control-max-age": "600",
    vary: "origin",
  };
}

function response(status: number, body: object, headers: Record<string, string> = {}): Response {
  const always = {
    "content-type": "application/json",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  };
  return new Response(JSON.stringify(body), { status, headers: { ...always, ...headers } });
}
