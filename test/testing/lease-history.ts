import type { LeaseInput, LeaseOutput } from "../../testkit/lease-model.ts";
import type { Operation } from "../../testkit/linearizable.ts";

export type Bug = "unfenced append" | "token twice" | "lost append";

/**
 * A generator of its own (Numerical Recipes' constants), so that the checker's tests do not depend on what they test.
 */
export function lcg(seed: number): () => number {
  let state = (seed ^ 0x9e37_79b9) >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Client {
  readonly name: string;
  token: bigint;
  head: number;
  pending: { call: number; input: LeaseInput; output?: LeaseOutput } | undefined;
}

/**
 * Five clients of one real lease, interleaved at random. Each operation is called, takes effect and returns at three
 * different times. `unknown` is the share of lost responses; half of them are lost before taking effect. `bugShown` shows
 * whether the planted bug changed a response.
 */
export function record(options: { seed: number; operations: number; unknown: number; bug?: Bug }): {
  history: Operation<LeaseInput, LeaseOutput>[];
  bugShown: boolean;
} {
  const random = lcg(options.seed);
  const lease = { token: 0n, held: false, head: 0 };
  const clients = ["a", "b", "c", "d", "e"].map((name): Client => ({ name, token: 0n, head: 0, pending: undefined }));
  const history: Operation<LeaseInput, LeaseOutput>[] = [];
  let bugShown = false;

  for (let now = 0; history.length < options.operations; now++) {
    const client = clients[Math.floor(random() * clients.length)]!;
    const { pending } = client;
    if (pending === undefined) client.pending = { call: now, input: choose(client) };
    else if (random() < options.unknown) {
      if (pending.output === undefined && random() < 0.5) perform(pending.input);
      history.push({ call: pending.call, ret: Infinity, input: pending.input });
      client.pending = undefined;
    } else if (pending.output === undefined) pending.output = perform(pending.input);
    else {
      history.push({ call: pending.call, ret: now, input: pending.input, output: pending.output });
      learn(client, pending.input, pending.output);
      client.pending = undefined;
    }
  }
  // Still open at the end: they may have taken effect.
  for (const { pending } of clients) if (pending !== undefined) history.push({ ...pending, ret: Infinity });
  return { history, bugShown };

  function choose({ name, token, head }: Client): LeaseInput {
    const dice = random();
    if (dice < 0.15) return { op: "read" };
    if (dice < 0.2) return { op: "takeover", owner: name };
    if (token === 0n || dice < 0.25) return { op: "acquire", owner: name };
    return dice < 0.35 ? { op: "release", token } : { op: "append", token, seq: head + 1 };
  }

  function learn(client: Client, input: LeaseInput, output: LeaseOutput): void {
    if (typeof output === "bigint") client.token = output;
    else if (typeof output === "object") client.head = output.head;
    else if (input.op === "append" && output === "ok") client.head = input.seq;
    // Some stale clients continue, to be fenced again.
    else if (output === "fenced" && random() < 0.5) client.token = 0n;
  }

  function perform(input: LeaseInput): LeaseOutput {
    switch (input.op) {
      case "read":
        return { token: lease.token, head: lease.head };
      case "acquire":
        if (lease.held) return "refused";
        break;
      case "takeover":
        break;
      default:
        return guarded(input);
    }
    lease.held = true;
    if (lease.token === 0n || !bites("token twice")) lease.token++;
    return lease.token;
  }

  function guarded(input: Extract<LeaseInput, { token: bigint }>): LeaseOutput {
    if (!lease.held || input.token !== lease.token) {
      if (input.op === "release" || input.seq !== lease.head + 1 || !bites("unfenced append")) return "fenced";
    }
    if (input.op === "release") {
      lease.held = false;
      lease.token++;
      return "ok";
    }
    if (input.seq !== lease.head + 1) return "not_head";
    if (!bites("lost append")) lease.head++;
    return "ok";
  }

  function bites(bug: Bug): boolean {
    if (options.bug !== bug || random() < 0.5) return false;
    bugShown = true;
    return true;
  }
}
