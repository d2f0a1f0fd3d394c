import { isTapeError } from "../src/model/errors.ts";
import { gate } from "../src/sdk/gate.ts";
import type { PublishedValue } from "../src/store/contract/store.ts";
import { askGate } from "./ask-gate.ts";
import type { Clients } from "./clients.ts";
import { type PlannedAsk, type PlannedCallback, talker } from "./plan-talk.ts";
import type { programs } from "./program.ts";
import { type Stage, tenant } from "./stage.ts";

/** A request and what its sender got: the key that the reply names, or the code of the error. */
export interface AskResult extends PlannedAsk {
  readonly to: string | undefined;
  readonly answered: number | undefined;
  readonly code: string | undefined;
}

/** A callback's call and its result. */
export interface CallbackResult extends PlannedCallback {
  readonly token: string;
  /** "opened", "duplicate", or the code of the refusal. */
  readonly result: string;
}

/** How long a request waits; less than a client waits for a replica. */
const askMs = 2_000;
/** Clients stop asking long after the last fault. */
const patienceMs = 60_000;
const watchEveryMs = 400;

/** Clients that start the talker together with signals, ask it, ask again, and call its callbacks back. */
export class TalkClients {
  readonly asks: AskResult[] = [];
  readonly calls: CallbackResult[] = [];
  readonly shown: PublishedValue[] = [];
  readonly #stage: Stage;
  readonly #clients: Clients;
  readonly #workflows: ReturnType<typeof programs>;

  constructor(stage: Stage, clients: Clients, workflows: ReturnType<typeof programs>) {
    this.#stage = stage;
    this.#clients = clients;
    this.#workflows = workflows;
  }

  async run(): Promise<void> {
    const { talk } = this.#stage.plan;
    if (talk === undefined) return;
    await Promise.all([
      ...talk.starts.map(({ atMs, key }, k) => this.#start(atMs, key, k)),
      ...talk.asks.map((ask) => this.#ask(ask)),
      ...talk.calls.map((call) => this.#callBack(call)),
      this.#watch(),
    ]);
  }

  /** Reads what the talker shows, again and again, as long as faults happen. */
  async #watch(): Promise<void> {
    const { time, plan, shared } = this.#stage;
    for (; time.now < plan.healAtMs; await time.sleep(watchEveryMs)) {
      if (!shared.away) this.shown.push(...(await shared.store.read.published(tenant, talker)));
    }
  }

  /** Everything that readers saw, and what they see at the end. */
  async published(): Promise<readonly PublishedValue[]> {
    if (this.#stage.plan.talk === undefined) return [];
    return [...this.shown, ...(await this.#stage.shared.store.read.published(tenant, talker))];
  }

  /** Each start has another input: only the first counts. */
  async #start(atMs: number, key: string, attempts: number): Promise<void> {
    const { time, plan } = this.#stage;
    await time.sleep(atMs);
    const requestedAt = time.wall();
    const signals = [{ gate: gate("left"), value: { key }, key }];
    const program = { ops: plan.talk!.ops, attempts };
    const started = await this.#clients.retry(
      (tape) => tape.start(this.#workflows.once, program, { id: talker, signals }),
      ["TAPE_RUN_ENDED"],
    );
    if (started === undefined) return;
    this.#clients.acknowledge({ what: "run", run: talker, requestedAt });
    this.#clients.acknowledge({ what: "signal", run: talker, key, requestedAt });
  }

  async #ask(ask: PlannedAsk): Promise<void> {
    const { time, plan } = this.#stage;
    await time.sleep(ask.atMs);
    const { key, from } = ask;
    while (time.now < plan.healAtMs + patienceMs) {
      const report = await this.#clients.call((tape) =>
        tape.ask(talker, askGate, { key, from }, { key, timeout: askMs }),
      );
      if (report !== undefined && "value" in report) {
        const { to, from: answered } = report.value;
        this.asks.push({ ...ask, to, answered, code: undefined });
        return;
      }
      const code = isTapeError(report?.error) ? report.error.code : undefined;
      if (code === "TAPE_ASK_REJECTED") {
        const [, to, answered] = /^rejected (.*) from (\d+)$/.exec(
          (report!.error as Error & { cause: Error }).cause.message,
        )!;
        this.asks.push({ ...ask, to, answered: Number(answered), code });
        return;
      }
      if (code === "TAPE_RUN_ENDED") {
        this.asks.push({ ...ask, to: undefined, answered: undefined, code });
        return;
      }
      const isFine = code === undefined || code === "TAPE_NO_REPLY" || code === "TAPE_RUN_NOT_FOUND";
      if (!isFine && !this.#clients.isTransient(report?.error)) this.#clients.faults.push(`an asker got ${code}`);
      await time.sleep(700);
    }
  }

  async #callBack(call: PlannedCallback): Promise<void> {
    const { time, plan, tokens } = this.#stage;
    await time.sleep(call.atMs);
    while (tokens.length <= call.which && time.now < plan.healAtMs) await time.sleep(300);
    const token = tokens[call.which];
    if (token === undefined) return;
    const sent = wrongToken(token, tokens, call.wrong);
    for (let tries = 0; tries < 40; tries++) {
      const report = await this.#clients.call((tape) => tape.deliver(sent, { from: call.atMs }));
      if (report === undefined || ("error" in report && this.#clients.isTransient(report.error))) {
        await time.sleep(500);
        continue;
      }
      const result = "value" in report ? (report.value ? "opened" : "duplicate") : codeOf(report.error);
      this.calls.push({ ...call, token: sent, result });
      return;
    }
  }
}

const codeOf = (error: unknown): string => (isTapeError(error) ? error.code : String(error));

/** The token with the position of another callback, or with a MAC that the store did not compute. */
function wrongToken(token: string, tokens: readonly string[], wrong: PlannedCallback["wrong"]): string {
  const [journal, pos, mac] = token.split(".") as [string, string, string];
  if (wrong === "mac") return `${journal}.${pos}.${mac.startsWith("A") ? "B" : "A"}${mac.slice(1)}`;
  if (wrong === undefined) return token;
  const other = tokens.find((one) => one !== token)?.split(".")[1] ?? String(Number(pos) + 1);
  return `${journal}.${other}.${mac}`;
}
