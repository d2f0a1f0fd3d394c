/** A row of the table of refusals, in errors.ts. */
export interface ErrorEntry {
  readonly fault: "caller" | "owner" | "operator" | "store" | "tape";
  /** no: the same call fails again; later: wait and repeat; reread: read the current state, then decide anew */
  readonly retry: "no" | "later" | "reread";
  readonly next: string;
}
