import type { Clock } from "./clock.ts";

/** A part of `fetch`, which tests replace. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

const metadataHost = "metadata.google.internal";
const tokenPath = "/computeMetadata/v1/instance/service-accounts/default/token";
/** A token is replaced this long before it expires: a request may be on its way for a while. */
const marginS = 60;

/** The access token of the service account of a machine in Google Cloud, kept until a minute before it expires. */
export function machineToken(
  clock: Clock,
  send: Fetch = (url, init) => fetch(url, init),
): (signal: AbortSignal) => Promise<string> {
  let kept: { readonly text: string; readonly until: number } | undefined;
  return async (signal) => {
    if (kept !== undefined && clock.mono() < kept.until) return kept.text;
    // The variable by which Google's own clients find another metadata server.
    const host = process.env.GCE_METADATA_HOST ?? metadataHost;
    const init = { headers: { "metadata-flavor": "Google" }, redirect: "error", signal } as const;
    const response = await send(`http://${host}${tokenPath}`, init);
    if (!response.ok) {
      throw new Error(`the metadata server answered ${response.status}; on another host, pass token()`);
    }
    const answer = (await response.json()) as { access_token: string; expires_in: number };
    kept = { text: answer.access_token, until: clock.mono() + (answer.expires_in - marginS) * 1_000 };
    return kept.text;
  };
}
