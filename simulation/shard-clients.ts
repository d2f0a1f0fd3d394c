import type { Log } from "../src/base/log.ts";
import type { ShardedSingleton } from "../src/host/singleton/sharded-singleton.ts";
import type { Tape } from "../src/host/tape.ts";
import { isTapeError } from "../src/model/errors.ts";
import type { TestProcess } from "../testkit/kit/process.ts";
import type { VirtualTime } from "../testkit/kit/virtual-time.ts";
import { times } from "./draw.ts";
import type { Plan } from "./plan.ts";
import type { Fault } from "./plan-faults.ts";
import type { PlannedShards, ShardChange } from "./plan-shards.ts";
import { type ShardCheck, type ShardEvidence, ShardWork, shardedName } from "./shard-work.ts";

const checkEveryMs = 1_000;
/** A little longer than it takes until the distribution is judged. */
const lastCalmMs = 24_000;
/** A process that has died is listed for a minute after its last report; what it did not take is kept for as long. */
const listedMs = 62_000;

interface Member {
  readonly process: TestProcess;
  readonly tape: Tape;
  /** undefined: it has left, or has not joined yet. */
  sharded: ShardedSingleton | undefined;
}

interface ShardDeps {
  readonly plan: Plan & { readonly shards: PlannedShards };
  readonly time: VirtualTime;
  readonly faultHits: readonly { readonly fault: Fault; readonly at: number }[];
  readonly log: Log;
}

/** Lets replicas join, die, leave and stand still, and notes every second what they hold. */
export class ShardClients {
  replicas: readonly { interrupt(what: "crash" | "pause", forMs: number | undefined): void }[] = [];
  readonly #deps: ShardDeps;
  readonly #work = new ShardWork();
  readonly #members = new Map<number, Member>();
  readonly #checks: ShardCheck[] = [];
  readonly #shedInPause: { process: string; shard: number }[] = [];
  readonly #deaths: number[] = [];
  #sheds = 0;
  #healed = false;
  /** Virtual times: when the last disturbance is over, and when no dead process counts as live any more. */
  #disturbedUntil = 0;
  #listedUntil = 0;
  #judgedHits = 0;

  constructor(deps: ShardDeps) {
    this.#deps = deps;
  }

  get evidence(): ShardEvidence {
    const { plan } = this.#deps;
    const { events } = this.#work;
    return { plan: plan.shards, events, checks: this.#checks, sheds: this.#sheds, shedInPause: this.#shedInPause };
  }

  async run(): Promise<void> {
    const { plan, time } = this.#deps;
    const watching = new AbortController();
    void this.#watch(watching.signal);
    for (const change of plan.shards.changes) {
      await time.sleep(Math.max(0, change.atMs - time.now));
      if (!this.#healed) await this.#change(change);
    }
    await time.sleep(Math.max(0, Math.max(...plan.shards.joinAtMs) - time.now));
    for (let left = this.#leftMs(); left > 0; left = this.#leftMs()) await time.sleep(left);
    watching.abort();
  }

  /** Starts the shards in a process that has opened its app, at its time. */
  async join(index: number, process: TestProcess, tape: Tape): Promise<void> {
    const { plan, time } = this.#deps;
    const member: Member = { process, tape, sharded: undefined };
    this.#members.set(index, member);
    await process.clock.sleep(Math.max(0, plan.shards.joinAtMs[index]! - time.now));
    await this.#start(index, member);
  }

  /** A process dies: it counts as live until its shards expire, or until its report is no longer listed. */
  noteDeath(process: string): void {
    const { time, plan } = this.#deps;
    this.#disturb(plan.ttlMs);
    this.#deaths.push(time.now);
    if (this.#work.runningIn(process).size === 0) this.#listedUntil = time.now + listedMs;
  }

  noteHeal(): void {
    this.#healed = true;
    this.#disturb(this.#deps.plan.ttlMs);
  }

  /** The log of a process. Its entry of the first shed may pause the process. */
  logOf(process: TestProcess): Log {
    const { plan, time, log } = this.#deps;
    const { pauseAtShedMs } = plan.shards;
    return (level, event, fields) => {
      log(level, event, fields);
      if (event !== "singleton.shard_shed") return;
      this.#sheds++;
      if (pauseAtShedMs === undefined || this.#shedInPause.length > 0 || this.#healed) return;
      this.#shedInPause.push({ process: process.name, shard: Number(fields?.shard) });
      process.pause();
      this.#disturb(pauseAtShedMs + plan.ttlMs);
      time.after(pauseAtShedMs, () => process.resume());
    };
  }

  async #start(index: number, member: Member): Promise<void> {
    const { plan } = this.#deps;
    const { process, tape } = member;
    const { of: shards, max } = plan.shards;
    const cap = max[index];
    const options = { shards, ...(cap !== undefined && { max: cap }) };
    for (;;) {
      try {
        this.#disturb(0);
        this.#noteJoin();
        member.sharded = await tape.singleton(shardedName, this.#work.body(process, plan.shards), options);
        return;
      } catch (error) {
        if (!isTapeError(error)) throw error;
        await process.clock.sleep(500); // the store was unreachable
      }
    }
  }

  /** One that joins after the shards of a dead process were taken over does not know that it is dead. */
  #noteJoin(): void {
    const { time, plan } = this.#deps;
    for (const at of this.#deaths) {
      if (time.now > at + plan.ttlMs / 2) this.#listedUntil = Math.max(this.#listedUntil, at + listedMs);
    }
  }

  /** One that stands still without a shard counts as live and takes none: the others keep what they shed for it. */
  #notePause(process: TestProcess, forMs: number): void {
    if (this.#work.runningIn(process.name).size > 0) return;
    this.#listedUntil = Math.max(this.#listedUntil, this.#deps.time.now + forMs + listedMs);
  }

  async #change({ replica, what, forMs }: ShardChange): Promise<void> {
    const { plan, time } = this.#deps;
    const member = this.#members.get(replica);
    if (member?.process.state !== "running") return;
    this.#disturb((forMs ?? 0) + plan.ttlMs);
    if (what === "pause") this.#notePause(member.process, forMs ?? 0);
    if (what !== "leave") return this.replicas[replica]!.interrupt(what === "die" ? "crash" : "pause", forMs);
    const { sharded } = member;
    if (sharded === undefined) return;
    member.sharded = undefined;
    await Promise.race([sharded.stop(), time.sleep(2 * plan.ttlMs)]);
    this.#disturb(forMs ?? 0);
    member.process.clock.after(forMs ?? 0, () => void this.#start(replica, member));
  }

  #disturb(forMs: number): void {
    this.#disturbedUntil = Math.max(this.#disturbedUntil, this.#deps.time.now + forMs);
  }

  #leftMs(): number {
    this.#noteHits();
    return this.#disturbedUntil + lastCalmMs - this.#deps.time.now;
  }

  #noteHits(): void {
    const { faultHits, plan } = this.#deps;
    for (const { at, fault } of faultHits.slice(this.#judgedHits)) {
      const member = this.#members.get(fault.replica);
      if (fault.kind === "pause" && member !== undefined) this.#notePause(member.process, fault.forMs ?? 0);
      this.#disturbedUntil = Math.max(this.#disturbedUntil, at + (fault.forMs ?? 0) + plan.ttlMs);
    }
    this.#judgedHits = faultHits.length;
  }

  async #watch(signal: AbortSignal): Promise<void> {
    for (; !signal.aborted; await this.#deps.time.sleep(checkEveryMs)) this.#check();
  }

  #check(): void {
    const { plan, time } = this.#deps;
    this.#noteHits();
    const live = [...this.#members].filter(([, { process, sharded }]) => process.state === "running" && sharded);
    const held = live.map(([index, { process }]) => ({
      process: process.name,
      shards: this.#work.runningIn(process.name).size,
      max: plan.shards.max[index],
    }));
    const isHeld = (shard: number): boolean =>
      live.some(([, { process }]) => this.#work.runningIn(process.name).has(shard));
    const unheld = times(plan.shards.of, (k) => k).filter((shard) => !isHeld(shard));
    const calmMs = time.now - this.#disturbedUntil;
    const knownMs = time.now - Math.max(this.#disturbedUntil, this.#listedUntil);
    this.#checks.push({ at: time.wall(), held, unheld, calmMs, knownMs });
  }
}
