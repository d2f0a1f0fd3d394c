import type { StartOptions } from "../src/host/options.ts";
import type { RunHandle } from "../src/host/run-handle.ts";
import type { Tape } from "../src/host/tape.ts";
import { type QueueDefinition, queue } from "../src/sdk/queue.ts";
import type { Clients } from "./clients.ts";
import type { PlannedQueueRun, PlannedQueues } from "./plan-queues.ts";
import type { Op, Program, programs } from "./program.ts";
import { type Stage, tenant } from "./stage.ts";

/** A start of a queue's run that a client knows to have succeeded. */
export interface QueueStart {
  readonly planned: PlannedQueueRun;
  /** The run that took it. */
  readonly run: string;
  readonly requestedAt: number;
  readonly at: number;
}

/** A limit that an operator has set, from its request to its acknowledgement. */
export interface LimitChange {
  readonly queue: string;
  readonly concurrency: number;
  readonly from: number;
  to: number;
}

export const queuesOf = ({ queues }: PlannedQueues): QueueDefinition[] =>
  queues.map(({ name, options }) => queue(name, options));

/** Starts runs of queues, cancels some, and acts as their operator. */
export class QueueClients {
  readonly starts: QueueStart[] = [];
  readonly changes: LimitChange[] = [];
  readonly #stage: Stage;
  readonly #clients: Clients;
  readonly #workflows: ReturnType<typeof programs>;
  readonly #queues: ReadonlyMap<string, QueueDefinition>;
  #holds = 0;

  constructor(stage: Stage, clients: Clients, workflows: ReturnType<typeof programs>) {
    this.#stage = stage;
    this.#clients = clients;
    this.#workflows = workflows;
    this.#queues = new Map(queuesOf(stage.plan.queues).map((one) => [one.name, one]));
  }

  run(): Promise<unknown> {
    const { runs, changes, pauses, takeovers } = this.#stage.plan.queues;
    return Promise.all([
      ...runs.map((run) => this.#start(run)),
      ...runs.map((run) => this.#cancel(run)),
      ...changes.map((change, k) => this.#change(change, `operator of queues ${k}`)),
      ...pauses.map((pause, k) => this.#pause(pause, `operator of pauses ${k}`)),
      ...takeovers.map((takeover, k) => this.#takeOver(takeover, `operator of waiting runs ${k}`)),
    ]);
  }

  async #start(planned: PlannedQueueRun): Promise<void> {
    await this.#stage.time.sleep(planned.atMs);
    await this.#request(planned);
    // A repeated start of a debounced run is another start.
    if (planned.debounce === undefined && (await this.#clients.afterRewind())) await this.#request(planned);
  }

  async #request(planned: PlannedQueueRun): Promise<void> {
    const { time } = this.#stage;
    const requestedAt = time.wall();
    const start = (tape: Tape): Promise<RunHandle<unknown>> =>
      tape.start(this.#workflows.once, programOf(planned), this.#optionsOf(planned));
    const response =
      planned.debounce === undefined ? { value: await this.#clients.retry(start) } : await this.#clients.call(start);
    if (response === undefined || !("value" in response) || response.value === undefined) return;
    this.starts.push({ planned, run: response.value.id, requestedAt, at: time.wall() });
  }

  #optionsOf({ id, queue: name, key, priority, delayMs, expiresMs, unique, debounce }: PlannedQueueRun): StartOptions {
    return {
      id,
      queue: this.#queues.get(name)!,
      key,
      priority,
      ...(delayMs !== undefined && { delay: delayMs }),
      ...(expiresMs !== undefined && { expires: expiresMs }),
      ...(unique !== undefined && { unique: { key: unique, onConflict: "join" as const } }),
      ...(debounce !== undefined && { debounce: { key: debounce, wait: 900, maxWait: 4_000 } }),
    };
  }

  async #cancel({ id, cancelAtMs }: PlannedQueueRun): Promise<void> {
    if (cancelAtMs === undefined) return;
    await this.#stage.time.sleep(cancelAtMs);
    // It may have ended, or have joined another run.
    const fine = ["TAPE_RUN_ENDED", "TAPE_RUN_NOT_FOUND"];
    await this.#clients.retry((tape) => tape.cancel(id, { reason: "the plan says so" }), fine);
  }

  async #change({ atMs, queue: name, concurrency }: PlannedQueues["changes"][number], by: string): Promise<void> {
    const { time } = this.#stage;
    await time.sleep(atMs);
    const change: LimitChange = { queue: name, concurrency, from: time.wall(), to: Number.POSITIVE_INFINITY };
    this.changes.push(change);
    const audit = { by, reason: "the plan says so" };
    await this.#clients.retry((tape) => tape.queues.set(name, { concurrency }, audit), ["TAPE_QUEUE_UNKNOWN"]);
    change.to = time.wall();
  }

  async #pause({ queue: name, fromMs, toMs }: PlannedQueues["pauses"][number], by: string): Promise<void> {
    const { time } = this.#stage;
    const audit = { by, reason: "the plan says so" };
    await time.sleep(fromMs);
    await this.#clients.retry((tape) => tape.queues.pause(name, audit), ["TAPE_QUEUE_UNKNOWN"]);
    await time.sleep(Math.max(0, toMs - time.now));
    const resume = () => this.#clients.retry((tape) => tape.queues.resume(name, audit), ["TAPE_QUEUE_UNKNOWN"]);
    await resume();
    if (await this.#clients.afterRewind()) await resume(); // the store may have forgotten it
  }

  /** A slow operator: holds the first waiting run for a while, then releases it. */
  async #holdFirst(name: string, by: string): Promise<void> {
    const { shared, time } = this.#stage;
    const { store } = shared;
    while (shared.away) await time.sleep(500);
    if (!(await store.read.queues(tenant)).some((one) => one.name === name)) return; // not defined yet
    const [first] = await store.read.queueSlots(tenant, name, { state: "QUEUED", limit: 1 });
    if (first === undefined) return;
    const claimant = { owner: by, label: by, reactor: "operator", ttlMs: 4 * holdMs };
    const nonce = BigInt(this.#holds++) + 1n;
    const audit = { reason: "manual", by, auditReason: "the plan says so" } as const;
    const request = { target: { run: first.run }, claimant, nonce, expect: "free", ...audit } as const;
    const acquired = await store.claim.acquire(tenant, request);
    if (!acquired.ok) return;
    await time.sleep(holdMs);
    const { term } = acquired;
    const data = { reason: "manual", notesTaken: term.notes, nextReactor: "recovery" } as const;
    const entry = { after: term.head, records: [{ kind: "term.ended", data } as const] };
    await store.fenced.append(term.fence, entry).catch(() => {}); // a note came, or it was taken over: the lease expires
  }

  async #takeOver({ atMs, queue: name }: PlannedQueues["takeovers"][number], by: string): Promise<void> {
    await this.#stage.time.sleep(atMs);
    const { queues } = this.#stage.plan.queues;
    if (queues.some((one) => one.name === name && one.style === "busy")) return this.#holdFirst(name, by);
    await this.#clients.call(async (tape) => {
      const [first] = await tape.queues.runs(name, { state: "QUEUED", limit: 1 });
      if (first !== undefined) await tape.leases.preempt({ run: first.run }, { by, reason: "the plan says so" });
    });
  }
}

/** How long a slow operator holds a waiting run. */
const holdMs = 700;

function programOf({ id, queue: name, key, insideMs, outsideMs }: PlannedQueueRun): Program {
  const inside: Op = { op: "inside", queue: name, key, mark: id, ms: insideMs };
  if (outsideMs === undefined) return { ops: [inside], attempts: 1 };
  return { ops: [inside, { op: "sleep", ms: outsideMs }, inside], attempts: 1 };
}
