import { isTapeError } from "../src/model/errors.ts";
import { encodeBody } from "../src/model/projection.ts";
import { type QuotaLimits, unlimited } from "../src/model/quota.ts";
import type { NewRecord } from "../src/model/records.ts";
import type { RunSpec, RunView, Store, StoredValue } from "../src/store/contract/store.ts";
import { scheduleSpec } from "../testkit/conformance/frame.ts";
import type { NeighbourAction } from "./plan-neighbours.ts";
import { wholeFeed } from "./shared-store.ts";
import type { Stage } from "./stage.ts";
import { neighbourTenant as tenant } from "./tenants.ts";

/** The result of an action under a quota. No other client writes for this tenant meanwhile. */
export interface QuotaCheck {
  readonly what: NeighbourAction["what"];
  readonly at: number;
  readonly limits: QuotaLimits;
  /** New roots or schedules, and the quotas that refused others. */
  readonly fresh: number;
  readonly refused: readonly string[];
  /** Errors with any other code. */
  readonly other: readonly string[];
  /** Actual counts: open runs, runs that ended and children that started within the last second. */
  readonly open: number;
  readonly justEnded: number;
  readonly justBorn: number;
  readonly schedules: number;
  /** Usage according to the store. */
  readonly used: { readonly runs: number; readonly bytes: number | null; readonly schedules: number };
}

/** The remaining history of a key, and the expected one. */
export interface KeyHistory {
  readonly key: string;
  readonly expected: readonly Pick<StoredValue, "version" | "value" | "deleted">[];
  readonly found: readonly StoredValue[];
}

/** Bytes of the neighbours' records: counted by the quota, and summed record by record. */
export interface ByteCount {
  readonly counted: number | null;
  readonly found: number;
}

/** Prefix of the neighbours' values. */
export const neighbourPrefix = "neighbours'";

const audit = { by: "landlord", reason: "the plan says so" };
const keys = ["x", "y"] as const;
/** Neighbours never write this much. */
const plenty = 1_000_000_000;
/** Runs are recounted after this time: those that ended or started since may be missing from the count. */
const recountMs = 1_000;

/** Performs the planned actions one after another, and keeps its own counts. */
export class Neighbours {
  readonly quotaChecks: QuotaCheck[] = [];
  readonly histories: KeyHistory[] = [];
  measured: ByteCount | undefined;
  readonly #stage: Stage;
  readonly #kept = new Map<string, KeyHistory["expected"]>();
  readonly #endings: number[] = [];
  readonly #births: number[] = [];
  #runs = 0;
  #nonce = 1n;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async run(): Promise<void> {
    const { plan, time, shared } = this.#stage;
    const { actions } = plan.neighbours;
    if (actions.length === 0) return;
    await shared.store.intake.setQuota(tenant, { runs: 2, schedules: 1, bytes: plenty }, audit);
    for (const action of actions) {
      await time.sleep(Math.max(0, action.atMs - time.now));
      await this.#perform(action);
    }
    await this.#finish();
  }

  async #perform({ what, n }: NeighbourAction): Promise<void> {
    const { read, intake } = this.#stage.shared.store;
    const { limits } = await read.quota(tenant);
    const outcome = { fresh: 0, refused: [] as string[], other: [] as string[] };
    const refuse = (error: unknown): void => {
      const quota = isTapeError(error, "TAPE_QUOTA");
      (quota ? outcome.refused : outcome.other).push(quota ? String(error.details.quota) : String(error));
    };
    const start = async (...specs: RunSpec[]): Promise<void> => {
      for (const verdict of await intake.createRuns(tenant, specs)) {
        if (!verdict.ok) refuse(verdict.error);
        else if (verdict.fresh) outcome.fresh++;
      }
    };
    const runs = await read.runs(tenant);
    const roots = runs.filter(({ parent }) => parent === null);
    const open = runs.filter(({ endedAt }) => endedAt === null);
    const run = open[n % Math.max(1, open.length)];
    // A run ends after its children, and a child notifies its parent: both need more than one record.
    const childless = open.filter((one) => one.parent === null && !runs.some(({ parent }) => parent === one.journal));
    const ripe = childless[n % Math.max(1, childless.length)];
    const key = keys[n % keys.length]!;
    switch (what) {
      case "start":
        await start(this.#spec());
        break;
      case "start several at once":
        await Promise.all([start(this.#spec(), this.#spec()), start(this.#spec()), start(this.#spec())]);
        break;
      case "start again":
        if (roots.length > 0) await start(specOf(roots[n % roots.length]!.id));
        break;
      case "child":
        if (run !== undefined) await this.#write(run, child(n, `${run.id}/${n}/${++this.#runs}`));
        break;
      case "end":
        if (ripe !== undefined) await this.#write(ripe);
        break;
      case "limit": {
        const runsLimit = [0, 1, 2, 3, 4, unlimited, null][n % 7]!;
        const bytes = n % 2 === 0 ? 200 : plenty;
        await intake.setQuota(tenant, { runs: runsLimit, schedules: n % 3, bytes }, audit);
        break;
      }
      case "schedule": {
        const known = (await read.schedules(tenant)).some(({ id }) => id === `nightly ${n % 3}`);
        const row = { id: `nightly ${n % 3}`, spec: scheduleSpec(), nextAt: null, paused: false };
        const put = await intake.putSchedule(tenant, row).then(() => true, refuse);
        if (put === true && !known) outcome.fresh++;
        break;
      }
      case "unschedule":
        await intake.deleteSchedule(tenant, `nightly ${n % 3}`);
        break;
      case "prune":
        await intake.prune(tenant, Number.MAX_SAFE_INTEGER, 2);
        break;
      case "put":
      case "delete":
        await this.#value(key, what === "put" ? `${neighbourPrefix} ${n}` : undefined);
    }
    await this.#recordCheck(what, what === "limit" ? (await read.quota(tenant)).limits : limits, outcome);
  }

  #spec(): RunSpec {
    return specOf(`n-${++this.#runs}`);
  }

  /** Acquires the run, appends, and releases it; without records it ends the run. */
  async #write({ id, notes }: RunView, ...records: NewRecord[]): Promise<void> {
    const { claim, fenced } = this.#stage.shared.store;
    const claimant = { owner: "neighbour/1", label: "neighbour", reactor: "agent", ttlMs: 20_000 };
    const request = { target: { run: id }, claimant, nonce: this.#nonce++, expect: "free_or_expired" } as const;
    const taken = await claim.acquire(tenant, request);
    if (!taken.ok) throw taken.error;
    const { fence, head } = taken.term;
    const ends = records.length === 0;
    const end: NewRecord = ends
      ? { kind: "run.ended", data: { status: "COMPLETED", outcome: 1, notesTaken: notes } }
      : { kind: "term.ended", data: { reason: "released", notesTaken: notes } };
    await fenced.append(fence, { after: head, records: [...records, end] });
    (ends ? this.#endings : this.#births).push(this.#stage.time.now);
  }

  async #value(key: string, value: string | undefined): Promise<void> {
    const { intake } = this.#stage.shared.store;
    const before = this.#kept.get(key) ?? [];
    const last = before.at(-1);
    if (value !== undefined) {
      const { version } = await intake.putValue(tenant, key, value, "unconditional");
      this.#kept.set(key, [...before, { version, value, deleted: false }]);
    } else if (last !== undefined && !last.deleted) {
      const { version } = await intake.deleteValue(tenant, key, last.version);
      this.#kept.set(key, [{ version, value: undefined, deleted: true }]);
    }
  }

  async #recordCheck(
    what: NeighbourAction["what"],
    limits: QuotaLimits,
    outcome: Pick<QuotaCheck, "fresh" | "refused" | "other">,
  ): Promise<void> {
    const { time, shared } = this.#stage;
    const { read } = shared.store;
    const [runs, schedules, { used }] = await Promise.all([
      read.runs(tenant),
      read.schedules(tenant),
      read.quota(tenant),
    ]);
    const open = runs.filter(({ endedAt }) => endedAt === null).length;
    const lately = (times: readonly number[]): number => times.filter((at) => at >= time.now - recountMs).length;
    const [justEnded, justBorn] = [lately(this.#endings), lately(this.#births)];
    const counts = { open, justEnded, justBorn, schedules: schedules.length, used };
    this.quotaChecks.push({ what, at: time.now, limits, ...outcome, ...counts });
  }

  /** Once idle, compares what remains item by item. */
  async #finish(): Promise<void> {
    const { read, intake } = this.#stage.shared.store;
    const { used } = await intake.setQuota(tenant, { bytes: plenty }, audit).then(() => read.quota(tenant));
    const feed = await wholeFeed(this.#stage.shared.store, tenant);
    const found = feed.reduce((sum, { data }) => sum + Buffer.byteLength(encodeBody(data)), 0);
    this.measured = { counted: used.bytes, found };
    for (const [key, expected] of this.#kept) {
      this.histories.push({ key, expected, found: await keptOf(this.#stage.shared.store, tenant, key) });
    }
  }
}

/** The remaining history of a key; empty if the store has compacted a part of it. */
export async function keptOf({ read }: Pick<Store, "read">, of: string, key: string): Promise<readonly StoredValue[]> {
  return read.valueHistory(of, key, 0).catch((error: unknown) => {
    if (isTapeError(error, "TAPE_VALUE_COMPACTED")) return [];
    throw error;
  });
}

const specOf = (id: string): RunSpec => ({ id, workflow: "nowhere", input: { rent: 1 } });

const child = (pos: number, id: string): NewRecord => ({
  kind: "child.started",
  data: { pos, id, workflow: "nowhere", input: 1, inputHash: "h" },
});
