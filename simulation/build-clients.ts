import type { Tape } from "../src/host/tape.ts";
import type { Term } from "../src/model/lease.ts";
import type { VirtualTime } from "../testkit/kit/virtual-time.ts";
import { pinnedIn } from "./pinned.ts";
import type { BuildName, PlannedBuilds } from "./plan-builds.ts";

/** A term that a process got. */
export interface BuildTerm {
  readonly journal: number;
  readonly token: bigint;
  /** Of the process. */
  readonly build: BuildName;
  /** Wall time. */
  readonly at: number;
}

/** A time in which no process of a build ran. Wall times. */
export interface BuildOutage {
  readonly build: BuildName;
  readonly from: number;
  to: number;
}

export interface BuildEvidence {
  readonly terms: readonly BuildTerm[];
  readonly outages: readonly Readonly<BuildOutage>[];
}

interface BuildReplica {
  readonly alive: boolean;
  boot(): void;
  cut(): void;
}

/** Clients and operators, as far as they are needed here. */
interface Starter {
  retry<T>(work: (tape: Tape) => Promise<T>): Promise<T | undefined>;
  acknowledge(done: { readonly what: "run"; readonly run: string; readonly requestedAt: number }): void;
}
interface Performer {
  perform(who: string, what: string, work: (tape: Tape) => Promise<unknown>): Promise<boolean>;
}

/** How long an operator waits for the replay of a moved run. */
const withinMs = 2_000;

/** Starts pinned runs, makes builds current, moves runs between them, and stops all processes of a build. */
export class BuildClients {
  replicas: readonly BuildReplica[] = [];
  readonly terms: BuildTerm[] = [];
  readonly outages: BuildOutage[] = [];
  readonly #plan: PlannedBuilds;
  readonly #time: VirtualTime;
  #healed = false;

  constructor(plan: PlannedBuilds, time: VirtualTime) {
    this.#plan = plan;
    this.#time = time;
  }

  buildOf(index: number): BuildName {
    return this.#plan.of[index]!;
  }

  /** Not to be started: all processes of its build are stopped now. */
  isStopped(index: number): boolean {
    return this.outages.some(({ build, to }) => build === this.buildOf(index) && to === Number.POSITIVE_INFINITY);
  }

  /** A process of this replica got these terms. */
  noteTerms(index: number, terms: readonly Term[]): void {
    const [build, at] = [this.buildOf(index), this.#time.wall()];
    for (const { journal, fence } of terms) this.terms.push({ journal, token: fence.token, build, at });
  }

  async run(clients: Starter, operator: Performer): Promise<void> {
    const { runs, current, moves } = this.#plan;
    await Promise.all([
      this.#stopBuild(),
      ...runs.map(async ({ id, atMs, work }) => {
        await this.#time.sleep(atMs);
        const requestedAt = this.#time.wall();
        await clients.retry((tape) => tape.start(pinnedIn("a", this.#time), work, { id }));
        clients.acknowledge({ what: "run", run: id, requestedAt });
      }),
      ...moves.map(async ({ atMs, from, to }, k) => {
        await this.#time.sleep(atMs);
        const by = `mover ${k}`;
        await operator.perform(by, `move from ${from} to ${to}`, (tape) =>
          tape.builds.move({ from, to, by, reason: "the plan says so", within: withinMs }),
        );
      }),
      ...(current === undefined ? [] : [this.#makeCurrent(current, operator)]),
    ]);
  }

  /** At least one process of each build runs from now on. */
  heal(): void {
    this.#healed = true;
    for (const { build } of this.outages) this.#return(build);
    for (const index of [0, 1]) if (this.replicas[index]?.alive === false) this.replicas[index].boot();
  }

  async #makeCurrent({ atMs, build }: NonNullable<PlannedBuilds["current"]>, operator: Performer): Promise<void> {
    await this.#time.sleep(atMs);
    const by = "deployer";
    await operator.perform(by, `current ${build}`, (tape) =>
      tape.builds.current(build, { by, reason: "the plan says so" }),
    );
  }

  async #stopBuild(): Promise<void> {
    const { outage } = this.#plan;
    if (outage === undefined) return;
    const { atMs, build, forMs } = outage;
    await this.#time.sleep(atMs);
    if (this.#healed) return;
    this.outages.push({ build, from: this.#time.wall(), to: Number.POSITIVE_INFINITY });
    for (const [index, replica] of this.replicas.entries()) if (this.buildOf(index) === build) replica.cut();
    if (forMs === undefined) return;
    await this.#time.sleep(forMs);
    this.#return(build);
  }

  /** The first process of the build starts again. */
  #return(build: BuildName): void {
    const outage = this.outages.find((one) => one.build === build && one.to === Number.POSITIVE_INFINITY);
    if (outage === undefined) return;
    outage.to = this.#time.wall();
    const index = this.#plan.of.indexOf(build);
    if (this.replicas[index]?.alive === false) this.replicas[index].boot();
  }
}
