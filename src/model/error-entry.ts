/** A row of the error table in error-table.ts. */
export interface ErrorEntry {
  /** Whose fault it is. */
  readonly fault: "caller" | "owner" | "operator" | "store" | "tape";
  /** no: the same call fails again; later: wait, then retry; reread: read the current state before deciding */
  readonly retry: "no" | "later" | "reread";
  /** What to do next, as an imperative. */
  readonly next: string;
}
