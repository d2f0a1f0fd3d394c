/** What the director of the zombie demo and its workers say to each other. */
export type FromDirector =
  | { readonly do: "step"; readonly pos: number; readonly name: string }
  /** Books the transfer, and only when that is written wires the money. */
  | { readonly do: "pay"; readonly pos: number }
  | { readonly do: "end" }
  | { readonly do: "renew" }
  | { readonly do: "belief" }
  /** It stops itself where no transaction is open: stopped inside one it would hold the file's lock. */
  | { readonly do: "stop" }
  | { readonly do: "quit" };

export type FromWorker =
  | { readonly say: "holding"; readonly token: string; readonly reason: string }
  | { readonly say: "written"; readonly title: string; readonly wired?: true }
  | { readonly say: "refused"; readonly title: string; readonly code: string; readonly message: string }
  | { readonly say: "belief"; readonly belief: string };
