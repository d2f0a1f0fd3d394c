import type { RouteName } from "../../src/protocol/contract.ts";
import type { Role } from "../../src/protocol/route.ts";

/** The credential of a request. `forged`: an invalid one. */
export interface Sender {
  readonly tenant: string | undefined;
  readonly role: Role | "none" | "forged";
}

/** One request as data: it can be stored, repeated and shrunk. */
export interface Shot {
  readonly sender: Sender;
  /** The route that it was drawn for. */
  readonly route?: RouteName | undefined;
  /** How it was broken, if it was. */
  readonly broken?: string | undefined;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Text, or base64 of bytes. */
  readonly body?: { readonly text: string } | { readonly base64: string };
  /** The caller disconnects after this many milliseconds. */
  readonly cutMs?: number | undefined;
  /** Base64 of the bytes for a raw socket, sent instead of all fields above. */
  readonly raw?: string | undefined;
}

export function bodyBytes({ body }: Shot): Buffer | undefined {
  if (body === undefined) return undefined;
  return "text" in body ? Buffer.from(body.text) : Buffer.from(body.base64, "base64");
}

/** A longer body is not printed on a terminal. */
const maxShown = 4_000;

/** The request as a curl command to paste, or as JSON for --replay if curl cannot send it. */
export function pasteable(shot: Shot, url: string): string {
  const tooLong = shot.body !== undefined && (!("text" in shot.body) || shot.body.text.length > maxShown);
  if (shot.raw !== undefined || tooLong) return `${JSON.stringify(shot).slice(0, maxShown)} (send it with --replay)`;
  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  const headers = Object.entries(shot.headers).flatMap(([name, value]) => ["-H", quoted(`${name}: ${value}`)]);
  const body = shot.body !== undefined && "text" in shot.body ? ["--data-binary", quoted(shot.body.text)] : [];
  const patience = shot.cutMs === undefined ? [] : ["--max-time", String(shot.cutMs / 1_000)];
  return [
    "curl -sS --path-as-is -i",
    "-X",
    shot.method,
    ...patience,
    ...headers,
    ...body,
    quoted(url + shot.target),
  ].join(" ");
}
