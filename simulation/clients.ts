import { seededRandom } from "../src/base/random.ts";
import type { Tape } from "../src/host/tape.ts";
import { isTapeError } from "../src/model/errors.ts";
import { gate } from "../src/sdk/gate.ts";
import type { PlannedRun, PlannedSignal } from "./plan-runs.ts";
import type { PlannedUnstarted } from "./plan-visitors.ts";
import type { programs } from "./program.ts";
import { type Stage, tenant } from "./stage.ts";

/** A call that a client knows to have succeeded. */
export interface AcknowledgedCall {
  readonly what: "run" | "signal" | "cancel";
  readonly run: string;
  /** The key of a signal. */
  readonly key?: string;
  /** Wall time of the request, and of the response. */
  readonly requestedAt: number;
  readonly at: number;
}

/** A signal without a key, sent once. */
export interface KeylessSignal {
  readonly run: string;
  readonly text: string;
  acknowledged: boolean;
  /** Wall time of the request, and of the response or the timeout. */
  readonly requestedAt: number;
  answeredAt: number;
}

/** Errors to retry while replicas die and the store is unreachable. */
const transient: ReadonlySet<string> = new Set([
  "TAPE_STORE_UNREACHABLE",
  "TAPE_STORE_BUSY",
  "TAPE_STORE_CLOSED",
  "TAPE_OUTCOME_UNKNOWN",
  "TAPE_OVERLOADED",
  "TAPE_UNARMED",
]);

/** After this, the replica counts as dead or paused, and the client calls another. */
const responseTimeoutMs = 3_000;

/** After the last fault: a call that fails for longer would fail forever. */
const clientTimeoutMs = 1_200_000;

export type ClientReport<T> = { readonly value: T } | { readonly error: unknown } | undefined;

/** Clients outside the system: they call any replica that is up, and retry. */
export class Clients {
  readonly acknowledged: AcknowledgedCall[] = [];
  readonly faults: string[] = [];
  /** Codes of expected refusals. */
  readonly refusalCodes = new Set<string>();
  /** Every signal without a key; each was sent once. */
  readonly keylessSignals: KeylessSignal[] = [];
  readonly #stage: Stage;
  readonly #tapes: () => readonly Tape[];
  readonly #workflows: ReturnType<typeof programs>;
  readonly #random;

  constructor(stage: Stage, workflows: ReturnType<typeof programs>, tapes: () => readonly Tape[]) {
    this.#stage = stage;
    this.#workflows = workflows;
    this.#tapes = tapes;
    this.#random = seededRandom(`clients ${stage.plan.seed}`);
  }

  /** Calls a random replica that is up. undefined: none is up, or none responded in time. */
  async call<T>(work: (tape: Tape) => Promise<T>): Promise<ClientReport<T>> {
    const up = this.#tapes();
    const tape = up[this.#random.int(Math.max(1, up.length))];
    if (tape === undefined) return undefined;
    const requestedAt = work(tape).then(
      (value): ClientReport<T> => ({ value }),
      (error: unknown): ClientReport<T> => ({ error }),
    );
    return Promise.race([requestedAt, this.#stage.time.sleep(responseTimeoutMs).then(() => undefined)]);
  }

  /** Retries until the call succeeds or fails with an error that no retry changes. `fine` lists expected codes. */
  async retry<T>(work: (tape: Tape) => Promise<T>, fine: readonly string[] = []): Promise<T | undefined> {
    for (;;) {
      const response = await this.call(work);
      if (response !== undefined && "value" in response) return response.value;
      if (response !== undefined && !this.isTransient(response.error)) {
        if (isTapeError(response.error) && fine.includes(response.error.code)) return undefined;
        this.faults.push(`a client got: ${String(response.error)}`);
        return undefined;
      }
      await this.#stage.time.sleep(500);
    }
  }

  isTransient(error: unknown): boolean {
    return isTapeError(error) && transient.has(error.code);
  }

  /** Runs every planned start, signal and cancellation. */
  run(): Promise<unknown> {
    const { plan } = this.#stage;
    return Promise.all([
      ...plan.runs.flatMap((run) => [this.#start(run), this.#startAgain(run), this.#cancel(run)]),
      ...plan.signals.map((signal) => this.#signal(signal)),
      ...(plan.unstarted === undefined ? [] : [this.#startUnheld(plan.unstarted)]),
    ]);
  }

  /** Creates the run without a worker, so that no process holds it. */
  async #startUnheld({ id: run, workflow, program, atMs, cancelAfterMs }: PlannedUnstarted): Promise<void> {
    const { time, shared } = this.#stage;
    const create = async (): Promise<void> => {
      while (shared.away) await time.sleep(500);
      const requestedAt = time.wall();
      await shared.store.intake.createRuns(tenant, [{ id: run, workflow, input: program }]);
      this.acknowledge({ what: "run", run, requestedAt });
    };
    await time.sleep(atMs);
    await create();
    await time.sleep(cancelAfterMs);
    const cancel = this.#whenThere(run, (tape) => tape.cancel(run, { reason: "a slip" }), { what: "cancel", run });
    if (await this.afterRewind()) await create();
    await cancel;
  }

  /** Cancels the run again if it is still open. */
  async cancelAgain(): Promise<void> {
    const { plan, orphanWatch } = this.#stage;
    if (plan.unstarted === undefined) return;
    const { id: run, workflow } = plan.unstarted;
    const { runs } = await orphanWatch.read();
    if (workflow === "once" || !runs.some(({ id, endedAt }) => id === run && endedAt === null)) return;
    await this.call((tape) => tape.cancel(run, { reason: "it is still there" }));
  }

  async #start(run: PlannedRun): Promise<void> {
    await this.#stage.time.sleep(run.atMs);
    await this.#startRun(run);
    if (await this.afterRewind()) await this.#startRun(run);
  }

  /** After a rewind, a client repeats its start: the same id is the same run. false: the store does not go back. */
  async afterRewind(): Promise<boolean> {
    const { time, plan } = this.#stage;
    if (plan.rewind === undefined) return false;
    const { atMs, awayMs } = plan.rewind;
    await time.sleep(Math.max(0, atMs + awayMs + 1_000 - time.now));
    return true;
  }

  async #startRun(run: PlannedRun): Promise<void> {
    const requestedAt = this.#stage.time.wall();
    const options = { id: run.id, ...(run.usd === undefined ? {} : { budget: { usd: run.usd } }) };
    await this.retry((tape) => tape.start(this.#workflows[run.workflow], run.program, options));
    this.acknowledge({ what: "run", run: run.id, requestedAt });
  }

  /** Starts the same id again: it must return the same run, or refuse a different input. */
  async #startAgain(run: PlannedRun): Promise<void> {
    const { time } = this.#stage;
    if (run.again === undefined) return;
    await time.sleep(run.atMs + run.again.atMs);
    const known = this.acknowledged.some(({ what, run: id }) => what === "run" && id === run.id);
    const { other } = run.again;
    // It would be the first start, or the first that the rewound store knows.
    if (other && (!known || this.#stage.plan.rewind !== undefined)) return;
    const program = other ? { ...run.program, attempts: 7 } : run.program;
    const options = { id: run.id, ...(run.usd === undefined ? {} : { budget: { usd: run.usd } }) };
    const response = await this.call((tape) => tape.start(this.#workflows[run.workflow], program, options));
    if (response === undefined || this.#stage.plan.rewind !== undefined) return;
    if ("error" in response && isTapeError(response.error)) this.refusalCodes.add(response.error.code);
    if (other && "value" in response) this.faults.push(`${run.id} was started again with another input`);
    if (
      "error" in response &&
      !this.isTransient(response.error) &&
      !(other && isTapeError(response.error, "TAPE_RUN_CONFLICT"))
    )
      this.faults.push(`starting ${run.id} again failed: ${String(response.error)}`);
  }

  async #signal(signal: PlannedSignal): Promise<void> {
    const { run, gate: name, atMs, key } = signal;
    await this.#stage.time.sleep(atMs);
    if (key !== undefined) {
      await this.#whenThere(run, (tape) => tape.signal(run, gate(name), { key }, { key }), {
        what: "signal",
        run,
        key,
      });
      return;
    }
    const text = `keyless ${this.keylessSignals.length}`;
    const { time } = this.#stage;
    const sent: KeylessSignal = {
      run,
      text,
      acknowledged: false,
      requestedAt: time.wall(),
      answeredAt: Number.POSITIVE_INFINITY,
    };
    this.keylessSignals.push(sent);
    const response = await this.call((tape) => tape.signal(run, gate(name), { key: text }));
    sent.acknowledged = response !== undefined && "value" in response;
    sent.answeredAt = time.wall();
  }

  async #cancel({ id: run, cancelAtMs }: PlannedRun): Promise<void> {
    if (cancelAtMs === undefined) return;
    await this.#stage.time.sleep(cancelAtMs);
    await this.#whenThere(run, (tape) => tape.cancel(run, { reason: "the plan says so" }), { what: "cancel", run });
  }

  async #whenThere(
    run: string,
    work: (tape: Tape) => Promise<void>,
    done: Omit<AcknowledgedCall, "at" | "requestedAt">,
  ): Promise<void> {
    const requestedAt = this.#stage.time.wall();
    for (;;) {
      const response = await this.call(work);
      if (response !== undefined && "value" in response) return this.acknowledge({ ...done, requestedAt });
      const error = response?.error;
      if (isTapeError(error, "TAPE_RUN_ENDED")) return;
      if (error !== undefined && !this.isTransient(error) && !isTapeError(error, "TAPE_RUN_NOT_FOUND")) {
        this.faults.push(`a client of ${run} got: ${String(error)}`);
        return;
      }
      if (this.#stage.time.now > this.#stage.plan.healAtMs + clientTimeoutMs) {
        this.faults.push(
          `a client of ${run} has retried for more than ${clientTimeoutMs} ms, and still gets: ${String(error)}`,
        );
        return;
      }
      await this.#stage.time.sleep(1_000);
    }
  }

  acknowledge(done: Omit<AcknowledgedCall, "at">): void {
    this.acknowledged.push({ ...done, at: this.#stage.time.wall() });
  }
}
