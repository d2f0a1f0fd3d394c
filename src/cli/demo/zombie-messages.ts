/** Messages between the director of the zombie demo and its workers. */
export type FromDirector =
  | { readonly do: "step"; readonly pos: number; readonly name: string }
  /** Books the transfer, and wires the money only once that is written. */
  | { readonly do: "pay"; readonly pos: number }
  | { readonly do: "end" }
  | { readonly do: "renew" }
  | { readonly do: "belief" }
  /** The worker stops itself outside a transaction; inside one it would keep the file's lock. */
  | { readonly do: "stop" }
  | { readonly do: "quit" };

export type FromWorker =
  | { readonly event: "holding"; readonly token: string; readonly reason: string }
  | { readonly event: "written"; readonly title: string; readonly wired?: true }
  | { readonly event: "rejected"; readonly title: string; readonly code: string; readonly message: string }
  | { readonly event: "belief"; readonly belief: string };
