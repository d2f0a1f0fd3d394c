/** How the receiver behaves: it does not listen, answers 500, never answers, or loses its answers. */
export type Trouble = "none" | "down" | "errors" | "hole" | "lost";

export type ReceiverCommand =
  | { readonly trouble: Trouble }
  /** Hold the next request before it is entered into the ledger, or before it is answered. */
  | { readonly hold: number; readonly stage: "before" | "after" }
  | { readonly release: number };

export type ReceiverMessage =
  | { readonly say: "listens"; readonly url: string }
  | { readonly say: "changed" }
  | { readonly say: "held"; readonly hold: number; readonly worker: string }
  /** The first batch under a higher token than all before. */
  | { readonly say: "term"; readonly token: string; readonly worker: string }
  /** A request met the trouble. */
  | { readonly say: "troubled"; readonly trouble: Trouble };

/** One line of the receiver's ledger. */
export interface SinkEntry {
  readonly id: string;
  readonly journal: string;
  readonly sequence: string;
  readonly token: string;
  /** How often the store had been restored. */
  readonly epoch: number;
  readonly worker: string;
  /** The request was held or its answer was lost, so the sender rightly sends it again. */
  readonly unanswered: boolean;
}
