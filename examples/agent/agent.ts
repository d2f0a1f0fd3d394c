// In your own project: from "durable-tape".
import { createRunner, effect, outcome, type Runner, type TapeContext, workflow } from "../../src/exports/index.ts";
import { findEntry, type Ledger, memoryLedger } from "../ledger.ts";

/** The model's next move: a tool, or the final answer. */
export type Move =
  | { readonly tool: "search"; readonly query: string }
  | { readonly tool: "mail"; readonly to: string; readonly text: string }
  | { readonly tool: "none"; readonly answer: string };

export interface Reply {
  readonly move: Move;
  readonly why: string;
  readonly tokens: number;
}

export interface World {
  /** The client of a language model; here a script. */
  readonly model: { next(conversation: readonly string[]): Promise<Reply> };
  readonly library: { search(query: string): Promise<string> };
  readonly post: { send(id: string, to: string, text: string): Promise<void>; sent(id: string): Promise<boolean> };
}

const maxTurns = 20;

/** The usual agent loop: call the model, run its tool, add the result. Each reply of the model is paid for once. */
export function agentOn({ model, library, post }: World) {
  const search = effect("library.search", (query: string) => library.search(query), { semantics: "read" });

  const mail = effect("post.send", (m: { id: string; to: string; text: string }) => post.send(m.id, m.to, m.text), {
    businessKey: (m) => m.id,
    observe: async (m) => ((await post.sent(m.id)) ? outcome.confirmed(undefined) : outcome.absent()),
  });

  async function use(tape: TapeContext, move: Exclude<Move, { tool: "none" }>, turn: number): Promise<string> {
    if (move.tool === "search") return search(move.query);
    const { to, text } = move;
    const call = mail.with({ id: `${tape.runId}/${turn}`, to, text });
    let sent = await tape.attempt(call);
    if (sent.status === "failed" && sent.reason !== "definite") sent = await tape.attempt(call);
    return sent.status === "confirmed" ? `mailed ${to}` : `could not mail ${to}: ${sent.reason}`;
  }

  const agent = workflow("agent", async (tape, input: { question: string }) => {
    const conversation = [input.question];
    for (let turn = 0; turn < maxTurns; turn++) {
      // Reserved before the call, then charged with the actual cost, so the run cannot exceed its budget.
      const reply = await tape.budget.spend({ tokens: 1_000 }, async () => {
        const value = await tape.decide(`turn ${turn}`, async (decision) => {
          const { move, why, tokens } = await model.next(conversation);
          decision.record({ model: "script-1", request: conversation, rationale: why, usage: { tokens } });
          return { move, tokens };
        });
        return { cost: { tokens: value.tokens }, value };
      });
      const { move } = reply;
      if (move.tool === "none") return { answer: move.answer, turns: turn + 1 };
      tape.progress(`turn ${turn}: ${move.tool}`);
      conversation.push(`${move.tool}: ${await use(tape, move, turn)}`);
    }
    return { answer: "No answer found.", turns: maxTurns };
  });

  return { agent, runner: createRunner({ workflows: [agent], effects: [search, mail] }) };
}

/** A deterministic model, so that a test can count its calls, also after a crash. */
export function scriptedModel(moves: readonly Move[], onCall: () => void = () => {}): World["model"] {
  return {
    async next(conversation) {
      onCall();
      const move = moves[conversation.length - 1] ?? { tool: "none", answer: "End of the script." };
      return { move, why: `line ${conversation.length} of the script`, tokens: 100 * conversation.length };
    },
  };
}

export const script: readonly Move[] = [
  { tool: "search", query: "opening hours" },
  { tool: "mail", to: "ada@example.org", text: "We open at nine." },
  { tool: "none", answer: "Ada has a mail." },
];

export function worldOn(ledger: Ledger, onCall?: () => void): World {
  return {
    model: scriptedModel(script, onCall),
    library: { search: async (query) => `${query}: nine to five` },
    post: {
      send: async (id, to) => ledger.add({ kind: "mail", subject: id, detail: to }),
      sent: async (id) => findEntry(ledger, "mail", id) !== undefined,
    },
  };
}

export const buildRunner = (world: World = worldOn(memoryLedger())): Runner => agentOn(world).runner;
