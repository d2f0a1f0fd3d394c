import type { Tape } from "../src/host/tape.ts";
import type { Clients } from "./clients.ts";
import { type RosterState, type RosterTrace, roster } from "./objects.ts";
import type { PlannedObjectCall } from "./plan-objects.ts";
import type { Stage } from "./stage.ts";

/** A result that a client received from a handler. */
export interface ObjectAnswer {
  readonly run: string;
  readonly trace: RosterTrace;
  /** Wall time of the first request, and of the response. */
  readonly requestedAt: number;
  readonly at: number;
}

/** A state that a client read, without a handler. */
export interface ObjectRead {
  readonly key: string;
  readonly state: RosterState;
  readonly requestedAt: number;
  readonly at: number;
}

/** Clients that call handlers of an object, cancel some calls, and read its state. */
export class ObjectClients {
  readonly answers: ObjectAnswer[] = [];
  readonly reads: ObjectRead[] = [];
  readonly #stage: Stage;
  readonly #clients: Clients;

  constructor(stage: Stage, clients: Clients) {
    this.#stage = stage;
    this.#clients = clients;
  }

  run(): Promise<unknown> {
    const { calls, reads } = this.#stage.plan.objects;
    return Promise.all([
      ...calls.map((call) => this.#call(call)),
      ...calls.map((call) => this.#cancel(call)),
      ...reads.map((read) => this.#read(read)),
    ]);
  }

  async #call(planned: PlannedObjectCall): Promise<void> {
    await this.#stage.time.sleep(planned.atMs);
    await this.#request(planned);
    if (await this.#clients.afterRewind()) await this.#request(planned);
  }

  /** The same id is the same call, so the client repeats it until it is answered. */
  async #request({ id, key, work, waits }: PlannedObjectCall): Promise<void> {
    const { time, plan } = this.#stage;
    const requestedAt = time.wall();
    const one = (tape: Tape) => tape.object(roster, key, { id });
    if (!waits) {
      await this.#clients.retry((tape) => one(tape).start.work(work));
      this.#clients.acknowledge({ what: "run", run: id, requestedAt });
      return;
    }
    // A rewound store may have forgotten the run; then the client calls again.
    const fine = ["TAPE_RUN_FAILED", ...(plan.rewind === undefined ? [] : ["TAPE_RUN_NOT_FOUND"])];
    const trace = await this.#clients.retry((tape) => one(tape).work(work), fine);
    if (trace !== undefined) this.answers.push({ run: id, trace, requestedAt, at: time.wall() });
  }

  async #cancel({ id, cancelAtMs }: PlannedObjectCall): Promise<void> {
    if (cancelAtMs === undefined) return;
    await this.#stage.time.sleep(cancelAtMs);
    const fine = ["TAPE_RUN_ENDED", "TAPE_RUN_NOT_FOUND"]; // it may have ended, or not have started
    await this.#clients.retry((tape) => tape.cancel(id, { reason: "the plan says so" }), fine);
  }

  async #read({ atMs, key }: { readonly atMs: number; readonly key: string }): Promise<void> {
    const { time } = this.#stage;
    await time.sleep(atMs);
    const requestedAt = time.wall();
    const response = await this.#clients.call((tape) => tape.object(roster, key).state());
    if (response === undefined || !("value" in response)) return;
    this.reads.push({ key, state: response.value, requestedAt, at: time.wall() });
  }
}
