/** What the director of the zombie demo and its workers say to each other. */
export type FromDirector =
  | { readonly do: "step"; readonly pos: number; readonly name: string }
  | { readonly do: "end" }
  | { readonly do: "renew" }
  | { readonly do: "belief" }
  | { readonly do: "quit" };

export type FromWorker =
  | { readonly say: "holding"; readonly token: string; readonly reason: string }
  | { readonly say: "written"; readonly title: string }
  | { readonly say: "refused"; readonly title: string; readonly code: string; readonly message: string }
  | { readonly say: "belief"; readonly belief: string };
