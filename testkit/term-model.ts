import type { SequentialModel } from "./linearizable.ts";

/**
 * The lease of the store contract: like leaseModel, but its journal also records its terms. Starting and ending a term
 * append one record each, and ending must also come after the head.
 */
export type TermInput =
  | { readonly op: "acquire"; readonly owner: string }
  | { readonly op: "takeover"; readonly owner: string }
  /** A takeover that ended the current term and did not start the next. */
  | { readonly op: "doom"; readonly owner: string }
  | { readonly op: "append"; readonly token: bigint; readonly seq: number }
  | { readonly op: "release"; readonly token: bigint; readonly seq: number }
  | { readonly op: "read lease" }
  | { readonly op: "read head" };

export type TermOutput =
  | "refused" // acquire, doom
  | "ok" // append, release
  | "fenced" // append, release
  | "not_head" // append, release
  | { readonly token: bigint; readonly head: number } // acquire, takeover
  | { readonly token: bigint; readonly held: boolean } // read lease
  | { readonly head: number; readonly under: bigint }; // read head: the last record and the token it carries

export interface TermState {
  readonly token: bigint;
  readonly held: boolean;
  /** Its holder is fenced, and any claimant may acquire it. */
  readonly doomed?: boolean;
  /** The seq of the last record. */
  readonly head: number;
  /** The token of the last record. */
  readonly under: bigint;
}

export function termModelFrom(initial: TermState): SequentialModel<TermState, TermInput, TermOutput> {
  return {
    init: () => initial,
    key: ({ token, held, doomed, head, under }) => `${token}${doomed ? "!" : held ? "+" : "-"}${head}/${under}`,
    effect: (input) => `${input.op} ${"token" in input ? `${input.token} ${input.seq}` : ""}`,
    step(state, input, output) {
      const [expected, next] = apply(state, input);
      return { ok: output === undefined || same(output, expected), state: next };
    },
  };
}

function apply(state: TermState, input: TermInput): [TermOutput, TermState] {
  const { token, held, doomed = false, head, under } = state;
  switch (input.op) {
    case "acquire":
    case "takeover": {
      if (input.op === "acquire" && held && !doomed) return ["refused", state];
      const next = token + 1n;
      return [
        { token: next, head: head + 1 },
        { token: next, held: true, head: head + 1, under: next },
      ];
    }
    case "doom":
      return ["refused", held ? { ...state, doomed: true } : state];
    case "append":
    case "release": {
      if (!held || doomed || input.token !== token) return ["fenced", state]; // the token is checked first, whatever else is wrong
      if (input.seq !== head + 1) return ["not_head", state];
      const releases = input.op === "release";
      return ["ok", { token: releases ? token + 1n : token, held: !releases, head: head + 1, under: token }];
    }
    case "read lease":
      return [{ token, held }, state];
    case "read head":
      return [{ head, under }, state];
  }
}

function same(a: TermOutput, b: TermOutput): boolean {
  if (typeof a === "string" || typeof b === "string") return a === b;
  const facts = Object.entries(b);
  return facts.length === Object.keys(a).length && facts.every(([key, value]) => value === Reflect.get(a, key));
}
