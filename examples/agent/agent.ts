// In your own project: from "durable-tape".
import { createRunner, effect, outcome, type Runner, type TapeContext, workflow } from "../../src/exports/index.ts";
import { findEntry, type Ledger, memoryLedger } from "../ledger.ts";

/** What the model wants next: a tool, or to be done. */
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
  /** Any client of any model fits; here it is a script. */
  readonly model: { next(conversation: readonly string[]): Promise<Reply> };
  readonly library: { search(query: string): Promise<string> };
  readonly post: { send(id: string, to: string, text: string): Promise<void>; sent(id: string): Promise<boolean> };
}

const mostTurns = 20;

/** The usual loop: ask the model, do what it says, tell it what came of it. Each answer of the model is paid for once. */
export function agentOn({ model, library, post }: World) {
  const search = effect("library.search", (query: string) => library.search(query), { semantics: "read" });

  const mail = effect("post.send", (m: { id: string; to: string; text: string }) => post.send(m.id, m.to, m.text), {
    businessKey: (m) => m.id,
    observe: async (m) => ((await post.sent(m.id)) ? outcome.confirmed(undefined) : outcome.absent()),
  });

  async function use(tape: TapeContext, move: Exclude<Move, { tool: "none" }>, turn: number): Promise<string> {
    if (move.tool === "search") return search(move.query);
    const { to, text } = move;
    const act = mail.with({ id: `${tape.runId}/${turn}`, to, text });
    let sent = await tape.attempt(act);
    if (sent.status === "failed" && sent.reason !== "definite") sent = await tape.attempt(act);
    return sent.status === "confirmed" ? `mailed ${to}` : `the mail to ${to} was not sent: ${sent.reason}`;
  }

  const agent = workflow("agent", async (tape, input: { question: string }) => {
    const conversation = [input.question];
    for (let turn = 0; turn < mostTurns; turn++) {
      // Reserved before the call, charged with what it cost: the run's budget is a wall, not a report.
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
    return { answer: "I could not find out.", turns: mostTurns };
  });

  return { agent, runner: createRunner({ workflows: [agent], effects: [search, mail] }) };
}

/** A model that says the same every time: in a test, and after a crash, one wants to see who asked how often. */
export function scriptedModel(moves: readonly Move[], onAsk: () => void = () => {}): World["model"] {
  return {
    async next(conversation) {
      onAsk();
      const move = moves[conversation.length - 1] ?? { tool: "none", answer: "The script is over." };
      return { move, why: `line ${conversation.length} of the script`, tokens: 100 * conversation.length };
    },
  };
}

export const script: readonly Move[] = [
  { tool: "search", query: "opening hours" },
  { tool: "mail", to: "ada@example.org", text: "We open at nine." },
  { tool: "none", answer: "I have told Ada." },
];

export function worldOn(ledger: Ledger, onAsk?: () => void): World {
  return {
    model: scriptedModel(script, onAsk),
    library: { search: async (query) => `${query}: nine to five` },
    post: {
      send: async (id, to) => ledger.add({ kind: "mail", subject: id, detail: to }),
      sent: async (id) => findEntry(ledger, "mail", id) !== undefined,
    },
  };
}

export const buildRunner = (world: World = worldOn(memoryLedger())): Runner => agentOn(world).runner;
