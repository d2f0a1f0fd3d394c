/** What a check of a request says: it may pass, or which answer it gets and why. The reason is logged, never sent. */
export type Verdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly status: 401 | 403; readonly reason: string };

/** A check of who sent a request. It sees the headers and the exact bytes of the body. */
export interface Verify {
  /** For the log: `googleOidc`, `webhookSignature`, … */
  readonly label: string;
  /** Whether the sender is known, and why not. */
  check(headers: Headers, body: Uint8Array): Promise<Verdict>;
}

export const passed: Verdict = { ok: true };
export const unauthenticated = (reason: string): Verdict => ({ ok: false, status: 401, reason });
export const forbidden = (reason: string): Verdict => ({ ok: false, status: 403, reason });
