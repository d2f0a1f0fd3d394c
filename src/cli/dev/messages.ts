/** What the director of the treasury and its workers say to each other. */
export type ToWorker =
  /** The bank's answer arrives, or is lost on its way. */
  | { readonly do: "answer"; readonly invoice: string }
  | { readonly do: "lose"; readonly invoice: string }
  /** It stops itself where no transaction is open: stopped inside one it would hold the file's lock. */
  | { readonly do: "stop" }
  /** It writes under the token it had, without looking at its clocks first, as a careless program would. */
  | { readonly do: "write"; readonly invoice: string }
  | { readonly do: "quit" };

export type FromWorker =
  | { readonly say: "ready" }
  | { readonly say: "wired"; readonly invoice: string; readonly id: string }
  | { readonly say: "looked"; readonly invoice: string; readonly found: boolean }
  | { readonly say: "written"; readonly invoice: string }
  | { readonly say: "refused"; readonly invoice: string; readonly message: string };
