import type { RouteName } from "../../src/protocol/contract.ts";
import type { Role } from "../../src/protocol/route.ts";

/** Whose credential a request carries. `forged`: one that is none. */
export interface Sender {
  readonly tenant: string | undefined;
  readonly role: Role | "none" | "forged";
}

/** One request, as data: it can be written to a file, sent again, and made smaller. */
export interface Shot {
  readonly sender: Sender;
  /** The route that it was drawn for. */
  readonly route?: RouteName | undefined;
  /** What is wrong with it, where something is. */
  readonly broken?: string | undefined;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Text, or base64 of bytes. */
  readonly body?: { readonly text: string } | { readonly base64: string };
  /** The caller goes away after so many milliseconds. */
  readonly cutMs?: number | undefined;
  /** Base64 of all that is written to a socket, in place of everything above. */
  readonly raw?: string | undefined;
}

export function bodyBytes({ body }: Shot): Buffer | undefined {
  if (body === undefined) return undefined;
  return "text" in body ? Buffer.from(body.text) : Buffer.from(body.base64, "base64");
}

/** So long a body is not for a terminal. */
const longestShown = 4_000;

/** The request as a command to paste, or where it is none that curl could send, as what to give to --replay. */
export function pasteable(shot: Shot, url: string): string {
  const tooLong = shot.body !== undefined && (!("text" in shot.body) || shot.body.text.length > longestShown);
  if (shot.raw !== undefined || tooLong)
    return `${JSON.stringify(shot).slice(0, longestShown)} (send it with --replay)`;
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
