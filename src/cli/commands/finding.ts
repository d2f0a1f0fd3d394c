/** The result of one check of `doctor`. */
export interface Finding {
  readonly check: string;
  /** warn: nothing is broken, but an operator should know. */
  readonly state: "ok" | "warn" | "fail";
  readonly message: string;
  readonly next?: string;
}

/** An empty problem: the check has passed. */
export function finding(check: string, ok: string, state: "warn" | "fail", problem: string, next: string): Finding {
  return problem === "" ? { check, state: "ok", message: ok } : { check, state, message: problem, next };
}

export const meantText = (meant: string | undefined): string => (meant === undefined ? "" : `; did you mean ${meant}?`);
