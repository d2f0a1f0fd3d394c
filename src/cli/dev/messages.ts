/** Messages between the director of the treasury and its workers. */
export type ToWorker =
  /** The bank's response arrives, or is lost on its way. */
  | { readonly do: "respond"; readonly invoice: string }
  | { readonly do: "lose"; readonly invoice: string }
  /** The worker stops itself outside a transaction; inside one it would keep the file's lock. */
  | { readonly do: "stop" }
  /** The worker writes under its old token without checking its clocks first, as a careless program would. */
  | { readonly do: "write"; readonly invoice: string }
  | { readonly do: "quit" };

export type FromWorker =
  | { readonly event: "ready" }
  | { readonly event: "wired"; readonly invoice: string; readonly id: string }
  | { readonly event: "observed"; readonly invoice: string; readonly found: boolean }
  | { readonly event: "written"; readonly invoice: string }
  | { readonly event: "rejected"; readonly invoice: string; readonly message: string };
