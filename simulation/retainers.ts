import { encode } from "../src/base/codec.ts";
import { silentLog } from "../src/base/log.ts";
import { erasedBody } from "../src/model/erasure.ts";
import { isTapeError } from "../src/model/errors.ts";
import type { Fence } from "../src/model/fence.ts";
import type { Term } from "../src/model/lease.ts";
import type { NewRecord } from "../src/model/records.ts";
import { type RetentionPolicy, retentionLease } from "../src/model/retention.ts";
import { retentionPass } from "../src/retention/pass.ts";
import type { RawRecord } from "../src/store/contract/retention.ts";
import type { Store } from "../src/store/contract/store.ts";
import { type Boundary, type CrashPoint, TestProcess } from "../testkit/kit/process.ts";
import type { PlannedErasure, PlannedRetention, RetainedRun, SweeperFault } from "./plan-retention.ts";
import type { Stage } from "./stage.ts";
import { retainedTenant as tenant } from "./tenants.ts";
import { type ArchiveEvent, WorldArchive } from "./world-archive.ts";

/** A run that has ended, by the ledger of the client that ended it. */
export interface EndedRun {
  readonly id: string;
  /** The id of its root. */
  readonly tree: string;
  readonly workflow: string;
  /** When it ended, and how long its root keeps it; null: forever. */
  readonly endedAt: number;
  readonly keptMs: number | null;
  /** Its records as the store had them: inbox, number and text. */
  readonly records: readonly string[];
  /** The same, without payloads. */
  readonly erasedRecords: readonly string[];
}

/** What an erasure of a tree came to. */
export interface SeenErasure {
  readonly tree: string;
  readonly parts: number;
  readonly repeated: boolean;
  /** Nothing was left to erase; otherwise the tree was archived and deleted before it began. */
  readonly done: boolean;
}

/** Trees that the store deleted. */
export interface SeenPrune {
  readonly token: bigint;
  readonly at: number;
  readonly ids: readonly string[];
}

/** What the judges need of retention, read after the end. */
export interface RetentionEvidence {
  readonly ended: readonly EndedRun[];
  /** Runs that the store still has. */
  readonly left: ReadonlySet<string>;
  /** The file of each run with a tombstone. */
  readonly tombstones: ReadonlyMap<string, string>;
  /** Deleted ids that could be started again. */
  readonly restarted: readonly string[];
  readonly files: ReadonlyMap<string, string>;
  readonly prunes: readonly SeenPrune[];
  readonly archive: readonly ArchiveEvent[];
  readonly hits: readonly SweeperFault[];
  readonly erasures: readonly SeenErasure[];
  /** What the store shows of each run that is left. */
  readonly texts: ReadonlyMap<string, string>;
}

const briefMs = 2_000;
const lastingMs = 3_600_000;
/** How long the code of a workflow keeps its runs. */
const codedMs = 4_000;
const policy: RetentionPolicy = { workflows: { brief: briefMs, lasting: lastingMs } };
const keptMs: Readonly<Record<RetainedRun["workflow"], number | null>> = {
  ...{ brief: briefMs, lasting: lastingMs, coded: codedMs, kept: null },
};
/** Short, and never renewed: sweepers replace one another all the time. */
const ttlMs = 3_000;
/** Faults and failures of the archive end with the client. */
const lastsMs = 45_000;

/** Ends runs, and lets several sweepers archive and delete them. */
export class Retainers {
  readonly #stage: Stage;
  readonly #plan: PlannedRetention | undefined;
  readonly #archive: WorldArchive | undefined;
  readonly #ended: EndedRun[] = [];
  readonly #prunes: SeenPrune[] = [];
  readonly #hits: SweeperFault[] = [];
  readonly #erasures: SeenErasure[] = [];
  readonly #counts = new Map<string, number>();
  #nonce = 1n;
  #isOver = false;

  constructor(stage: Stage) {
    const { plan, time } = stage;
    this.#stage = stage;
    this.#plan = plan.retention;
    this.#archive = plan.retention && new WorldArchive(plan.retention, time, plan.seed);
  }

  async run(): Promise<void> {
    if (this.#plan === undefined) return;
    const { time } = this.#stage;
    for (let k = 0; k < this.#plan.sweepers; k++) this.#boot(k, 1);
    await Promise.all(this.#plan.runs.map((run, k) => this.#live(run, `retained-${k}`)));
    await time.sleep(lastsMs - time.now);
    this.#isOver = true;
  }

  /** Starts a run with its children, and ends the children first. */
  async #live({ atMs, workflow, children, erasure }: RetainedRun, id: string): Promise<void> {
    const { time, shared } = this.#stage;
    const { intake } = shared.bare;
    await time.sleep(atMs);
    await intake.createRuns(tenant, [{ id, workflow, input: { secret: payloadOf(id) } }]);
    const root = await this.#acquire({ run: id });
    let head = root.head;
    const write = async (records: readonly NewRecord[]): Promise<void> => {
      ({ head } = await shared.bare.fenced.append(root.fence, { after: head, records }));
    };
    for (let pos = 100; pos < 100 + (erasure?.steps ?? 0); pos += 100) {
      const steps = Array.from({ length: 100 }, (_, k) => ({ pos: pos + k, name: "s", value: payloadOf(id) }));
      await write(steps.map((data) => ({ kind: "step.done", data })));
    }
    for (let pos = 0; pos < children; pos++) {
      const own = `${id}/${pos}`;
      const child = { pos, id: own, workflow: "child", input: payloadOf(own), inputHash: "h" };
      await write([{ kind: "child.started", data: child }]);
      await time.sleep(200);
      const term = await this.#acquire({ run: child.id });
      const parent = { journal: root.journal, pos, id: child.id };
      const end = { status: "COMPLETED", outcome: payloadOf(own), notesTaken: 0, parent } as const;
      await shared.bare.fenced.append(term.fence, { after: term.head, records: [{ kind: "run.ended", data: end }] });
    }
    await time.sleep(300);
    const retain = workflow === "coded" && { retainMs: codedMs };
    const end = { status: "COMPLETED", outcome: payloadOf(id), notesTaken: children, ...retain } as const;
    await write([{ kind: "run.ended", data: end }]);
    for (const one of [id, ...Array.from({ length: children }, (_, pos) => `${id}/${pos}`)])
      await this.#enter(one, id, workflow);
    if (erasure !== undefined) await this.#erase(id, erasure);
  }

  /** Erases the tree part by part; sweepers work in between. */
  async #erase(tree: string, { afterMs, crash }: PlannedErasure): Promise<void> {
    const { time, shared } = this.#stage;
    await time.sleep(afterMs);
    const request = { by: "ann", reason: "a request", tree: true };
    let parts = 0;
    let repeated = false;
    try {
      for (let after: string | undefined; ; ) {
        const step = await shared.bare.intake.eraseRun(tenant, tree, {
          ...request,
          ...(after !== undefined && { after }),
        });
        parts++;
        after = step.next;
        if (after === undefined) break;
        await time.sleep(700);
        if (crash && !repeated) [after, repeated] = [undefined, true];
      }
      this.#erasures.push({ tree, parts, repeated, done: true });
    } catch (error) {
      if (!isTapeError(error, "TAPE_RUN_GONE")) throw error;
      this.#erasures.push({ tree, parts, repeated, done: false });
    }
  }

  async #acquire(target: { readonly run: string } | { readonly name: string }, store?: Store): Promise<Term> {
    const claimant = { owner: `keeper/${this.#nonce}`, label: "keeper", reactor: "agent", ttlMs };
    const request = { target, claimant, nonce: this.#nonce++, expect: "free_or_expired" } as const;
    const taken = await (store ?? this.#stage.shared.bare).claim.acquire(tenant, request);
    if (!taken.ok) throw taken.error;
    return taken.term;
  }

  async #enter(id: string, tree: string, of: RetainedRun["workflow"]): Promise<void> {
    const { bare } = this.#stage.shared;
    const { journal, endedAt, workflow } = (await bare.read.run(tenant, id))!;
    const raw = await bare.retention!.records(tenant, [journal, -journal], {});
    const lines = (bodyOf: (one: RawRecord) => string): string[] =>
      raw.map((one) => `${one.journal < 0 ? "inbox " : ""}${one.seq} ${bodyOf(one)}`);
    const records = lines(({ body }) => body);
    const erasedRecords = lines(({ kind, body }) => erasedBody(kind, body));
    this.#ended.push({ id, tree, workflow, endedAt: endedAt!, keptMs: keptMs[of], records, erasedRecords });
  }

  #boot(sweeper: number, incarnation: number): void {
    const { time, shared } = this.#stage;
    const process: TestProcess = new TestProcess({
      name: `sweeper ${sweeper}.${incarnation}`,
      clock: time,
      store: this.#noting(shared.bare),
      crashPointAt: (boundary) => this.#crashPointAt(boundary, sweeper, () => process, incarnation),
      travelMs: () => 3,
    });
    void this.#sweep(process);
  }

  async #sweep(process: TestProcess): Promise<void> {
    const { everyMs, batch } = this.#plan!;
    const { store, clock } = process;
    const counts = { runs: 0, bytes: 0, files: 0, failures: 0 };
    const deps = { store, ops: store.retention!, clock, counts, log: silentLog, progress: () => {}, zip: unzipped };
    for (let fence: Fence | undefined; !this.#isOver; await clock.sleep(everyMs)) {
      try {
        fence ??= (await this.#acquire({ name: retentionLease }, store)).fence;
        const { signal } = new AbortController();
        await retentionPass({ ...deps, fence, signal }, { policy, archive: this.#archive!.on(process), batch });
      } catch (error) {
        if (isTapeError(error, "TAPE_FENCED")) fence = undefined;
      }
    }
  }

  /** Notes at the store what was deleted, and under which token. */
  #noting(store: Store): Store {
    const ops = store.retention!;
    const prune: typeof ops.prune = async (fence, trees, ...rest) => {
      const pruned = await ops.prune(fence, trees, ...rest);
      const ids = trees.flatMap(({ runs }) => runs.map(({ id }) => id));
      this.#prunes.push({ token: fence.token, at: this.#stage.time.wall(), ids });
      return pruned;
    };
    return {
      ...store,
      retention: new Proxy(ops, { get: (of, key) => (key === "prune" ? prune : Reflect.get(of, key)) }),
    };
  }

  #crashPointAt({ name, edge }: Boundary, sweeper: number, of: () => TestProcess, incarnation: number): CrashPoint {
    const key = `${sweeper} ${name} ${edge}`;
    const n = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, n);
    const fault = this.#plan!.faults.find(
      (one) => one.sweeper === sweeper && one.at === name && one.edge === edge && one.n === n,
    );
    if (fault === undefined || this.#isOver) return undefined;
    this.#hits.push(fault);
    const process = of();
    this.#stage.time.after(fault.forMs, () => {
      if (process.state === "crashed") this.#boot(sweeper, incarnation + 1);
      else process.resume();
    });
    return fault.kind;
  }

  /** Reads what is left where. */
  async evidence(): Promise<RetentionEvidence | undefined> {
    if (this.#plan === undefined) return undefined;
    this.#isOver = true;
    const { read, intake } = this.#stage.shared.bare;
    const left = new Set<string>();
    const tombstones = new Map<string, string>();
    const restarted: string[] = [];
    const texts = new Map<string, string>();
    for (const { id, workflow } of this.#ended) {
      const view = await read.run(tenant, id);
      if (view !== undefined) {
        left.add(id);
        const raw = await this.#stage.shared.bare.retention!.records(tenant, [view.journal, -view.journal], {});
        texts.set(id, encode([view.outcome, view.labels, ...raw.map(({ body }) => body)]));
        continue;
      }
      for (const { archive } of await read.archived(tenant, { id })) tombstones.set(id, archive);
      const [verdict] = await intake.createRuns(tenant, [{ id, workflow, input: { secret: payloadOf(id) } }]);
      if (verdict?.ok === true && verdict.fresh) restarted.push(id);
    }
    const files = new Map([...this.#archive!.files].map(([name, bytes]) => [name, Buffer.from(bytes).toString()]));
    const seen = {
      prunes: this.#prunes,
      archive: this.#archive!.events,
      hits: this.#hits,
      erasures: this.#erasures,
      texts,
    };
    return { ended: this.#ended, left, tombstones, restarted, files, ...seen };
  }
}

/** What no trace of an erased run may have: its id stays. */
const payloadOf = (id: string): string => `payload ${id.replaceAll(/[-/]/g, "~")}`;
export const hasPayload = (text: string): boolean => text.includes("payload retained~");

/** Compression takes real time. */
async function* unzipped(lines: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  for await (const block of lines) yield Buffer.from(block);
}
