import type { SequentialModel } from "./linearizable.ts";

export type LeaseInput =
  | { readonly op: "acquire"; readonly owner: string }
  | { readonly op: "takeover"; readonly owner: string }
  | { readonly op: "append"; readonly token: bigint; readonly seq: number }
  | { readonly op: "release"; readonly token: bigint }
  | { readonly op: "read" };

export type LeaseOutput =
  | bigint // acquire, takeover: the token of the new term
  | "refused" // acquire
  | "ok" // append, release
  | "fenced" // append, release
  | "not_head" // append
  | { readonly token: bigint; readonly head: number }; // read

export interface LeaseState {
  readonly token: bigint;
  readonly held: boolean;
  /** The seq of the last record; 0 before the first. */
  readonly head: number;
}

/**
 * One lease and the journal it guards. Time is not modelled: a takeover stands for what expiry or an operator allows.
 * The token increases by one with every term and every release, so that a released holder cannot write.
 */
export const leaseModel: SequentialModel<LeaseState, LeaseInput, LeaseOutput> = leaseModelFrom({
  token: 0n,
  held: false,
  head: 0,
});

/** {@link leaseModel} for a lease with a history. */
export function leaseModelFrom(initial: LeaseState): SequentialModel<LeaseState, LeaseInput, LeaseOutput> {
  return {
    init: () => initial,
    key: ({ token, held, head }) => `${token}${held ? "+" : "-"}${head}`,
    // The owner's name does not matter here: later operations are judged by the token.
    effect: (input) => `${input.op} ${"token" in input ? input.token : ""} ${"seq" in input ? input.seq : ""}`,
    step(state, input, output) {
      const [expected, next] = apply(state, input);
      return { ok: output === undefined || sameOutput(output, expected), state: next };
    },
  };
}

function apply(state: LeaseState, input: LeaseInput): [LeaseOutput, LeaseState] {
  const { token, held, head } = state;
  switch (input.op) {
    case "acquire":
      if (held) return ["refused", state];
      return [token + 1n, { token: token + 1n, held: true, head }];
    case "takeover":
      return [token + 1n, { token: token + 1n, held: true, head }];
    case "append":
      if (!held || input.token !== token) return ["fenced", state];
      return input.seq === head + 1 ? ["ok", { token, held, head: head + 1 }] : ["not_head", state];
    case "release":
      if (!held || input.token !== token) return ["fenced", state];
      return ["ok", { token: token + 1n, held: false, head }];
    case "read":
      return [{ token, head }, state];
  }
}

function sameOutput(a: LeaseOutput, b: LeaseOutput): boolean {
  return typeof a === "object" && typeof b === "object" ? a.token === b.token && a.head === b.head : a === b;
}
