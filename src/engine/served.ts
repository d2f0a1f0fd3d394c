import type { Clock } from "../base/clock.ts";
import { suggest } from "../base/suggest.ts";
import { isBuild } from "../model/build.ts";
import type { QueuePosition, Store } from "../store/contract/store.ts";
import { readQueues } from "../store/read-queues.ts";

/** Process reports are read at most this often: they change only when a process starts or stops. */
const freshMs = 5_000;
const maxTenants = 1_000;

interface Known {
  readonly at: number;
  /** Workflows that processes have reported; undefined: some process does not report its own. */
  readonly served: Promise<ReadonlySet<string> | undefined>;
}

/**
 * Which workflows have a process, according to process reports. A run of any other workflow waits, which is no error:
 * its process may start later. But its name may be a typing error, so the caller that starts it gets a hint at once.
 */
export class ServedWorkflows {
  readonly #store: Pick<Store, "read">;
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();

  constructor(store: Pick<Store, "read">, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** A hint for the starter of this workflow; undefined: a process has it. `here`: workflows the caller knows. */
  async hint(tenant: string, workflow: string, here: readonly string[] = []): Promise<string | undefined> {
    const served = await this.#served(tenant);
    if (served === undefined || served.has(workflow)) return undefined;
    const near = suggest(
      workflow,
      [...new Set([...here, ...served])].filter((name) => name !== workflow),
    );
    const meant = near === undefined ? "." : `; did you mean ${near}?`;
    return `no running process has reported the workflow ${workflow}${meant} The run waits for one; or cancel it.`;
  }

  #served(tenant: string): Known["served"] {
    const now = this.#clock.mono();
    const known = this.#known.get(tenant);
    if (known !== undefined && now - known.at < freshMs) return known.served;
    if (this.#known.size >= maxTenants) this.#known.clear();
    const served = reportedWorkflows(this.#store, tenant).catch(() => undefined); // a hint must not fail the call
    this.#known.set(tenant, { at: now, served });
    return served;
  }
}

/** The workflows of all processes with a recent report; undefined: one of them does not list its own. */
export const reportedWorkflows = (store: Pick<Store, "read">, tenant: string) => reported(store, tenant, "workflows");

/** The queues of all processes with a recent report; undefined: one of them does not list its own. */
export const reportedQueues = (store: Pick<Store, "read">, tenant: string) => reported(store, tenant, "queues");

async function reported(
  store: Pick<Store, "read">,
  tenant: string,
  what: "workflows" | "effects" | "queues",
): Promise<ReadonlySet<string> | undefined> {
  const found = new Set<string>();
  for (const { body } of await store.read.processes(tenant)) {
    const names = ((body ?? {}) as Readonly<Record<string, unknown>>)[what];
    if (!Array.isArray(names)) return undefined;
    for (const name of names) found.add(String(name));
  }
  return found;
}

/** Processes report every 15 s. One that has missed two reports counts no more. */
const silentMs = 35_000;

/** How many processes that report have each build. */
export async function processesByBuild(store: Pick<Store, "read">, tenant: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const { body, agoMs } of await store.read.processes(tenant)) {
    if (agoMs > silentMs) continue;
    const { build } = (body ?? {}) as { readonly build?: unknown };
    if (isBuild(build)) counts.set(build, (counts.get(build) ?? 0) + 1);
  }
  return counts;
}

/** Younger work may be about to be claimed. */
const unservedMs = 10_000;
/** Enough to see which effects are affected. */
const maxItems = 200;

export interface UnservedWorkflow {
  readonly workflow: string;
  /** The build that the runs are pinned to: no process has it. */
  readonly build: string | undefined;
  readonly runs: number;
  /** A similar name that a process has. */
  readonly suggestion: string | undefined;
}

/** Workflows that no process has reported, of runs that no process has claimed for ten seconds. */
export async function unservedWorkflows(store: Pick<Store, "read">, tenant: string): Promise<UnservedWorkflow[]> {
  const waiting = await store.read.unserved([], unservedMs, tenant);
  if (waiting.length === 0) return [];
  const served = await reportedWorkflows(store, tenant);
  if (served === undefined) return [];
  const builds = await processesByBuild(store, tenant);
  const isServed = ({ workflow, build }: { readonly workflow: string; readonly build?: string }): boolean =>
    served.has(workflow) && (build === undefined || builds.has(build));
  return waiting
    .filter((one) => !isServed(one))
    .map(({ workflow, build, runs }) => {
      const suggestion = served.has(workflow) ? undefined : suggest(workflow, [...served]);
      return { workflow, build, runs, suggestion };
    });
}

export interface UnservedEffect {
  readonly effect: string;
  readonly items: number;
  readonly suggestion: string | undefined;
}

/** Effects that wait for a reactor although no process has reported their definition: none can send or observe them. */
export async function unservedEffects(store: Pick<Store, "read">, tenant: string): Promise<UnservedEffect[]> {
  const filter = { status: ["PENDING", "UNKNOWN"], minAgeMs: unservedMs, limit: maxItems };
  const waiting = (await store.read.effects(tenant, filter)).filter(({ item, name }) => item !== null && name !== null);
  if (waiting.length === 0) return [];
  const served = await reported(store, tenant, "effects");
  if (served === undefined) return [];
  const counts = new Map<string, number>();
  for (const { name } of waiting) if (!served.has(name!)) counts.set(name!, (counts.get(name!) ?? 0) + 1);
  return [...counts].map(([effect, items]) => ({ effect, items, suggestion: suggest(effect, [...served]) }));
}

export interface UnservedQueue {
  readonly queue: string;
  /** Runs that wait in it. */
  readonly runs: number;
  readonly suggestion: string | undefined;
}

/** Queues in which a run has waited for ten seconds and that no process has reported: none admits their runs. */
export async function unservedQueues(store: Pick<Store, "read">, tenant: string): Promise<UnservedQueue[]> {
  const waiting = (await readQueues(store.read, tenant)).filter(({ oldestWaitMs = 0 }) => oldestWaitMs >= unservedMs);
  if (waiting.length === 0) return [];
  const served = await reportedQueues(store, tenant);
  if (served === undefined) return [];
  return waiting
    .filter(({ name }) => !served.has(name))
    .map(({ name, waiting: runs }) => ({ queue: name, runs, suggestion: suggest(name, [...served]) }));
}

/**
 * Where a run is in its queue, and why it does not start. The store knows the limits; process reports show whether any
 * process has both the run's workflow and its queue.
 */
export async function explainQueue(
  store: Pick<Store, "read">,
  tenant: string,
  run: string,
): Promise<QueuePosition | undefined> {
  const position = await store.read.queuePosition(tenant, run);
  if (position?.state !== "QUEUED" || position.sinceMs < unservedMs) return position;
  const [view, queues, workflows] = await Promise.all([
    store.read.run(tenant, run),
    reportedQueues(store, tenant),
    reportedWorkflows(store, tenant),
  ]);
  if (view === undefined) return position;
  const { workflow } = view;
  if (queues?.has(position.queue) !== false && workflows?.has(workflow) !== false) return position;
  return { ...position, reasons: [...position.reasons, { why: "unserved", workflow }] };
}
