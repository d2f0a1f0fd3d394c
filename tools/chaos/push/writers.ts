import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../../src/base/clock.ts";
import type { Random } from "../../../src/base/random.ts";
import type { Tape } from "../../../src/host/tape.ts";
import { type Death, deaths } from "../../../test/processes/dying.ts";
import type { Injection } from "../fault.ts";
import type { StartedRun } from "../judge.ts";
import { LoadLog, liveRuns, resendSignals, signalAnswer } from "../load.ts";
import type { Loader } from "../loader.ts";
import { Replica } from "../replicas.ts";
import { persistently } from "../store-calls.ts";
import type { WriterNote, WriterOrders } from "./writer.ts";

export const writerKind = "kill -9 of a writer between alarm, commit and wake-up";
const deathTexts: Readonly<Record<Death, string>> = {
  armed: "its alarm was set, and nothing was sent",
  sent: "while its write was under way",
  committed: "after its commit",
  woken: "when it sent the wake-up",
};

export interface WritersOptions {
  readonly orders: Omit<WriterOrders, "commits">;
  readonly folder: string;
  /** Answers gates and counts live runs; no fault ends it. */
  readonly client: Tape;
  readonly flows: readonly string[];
  readonly random: Random;
  readonly maxLive: number;
  readonly injections: () => Injection[];
  /** Alarms that fire within a minute. */
  readonly alarmsNear: () => number;
  /** Whether writers die before the last ones. */
  readonly mortal: boolean;
  /** Where the last writers die. */
  readonly last: readonly Death[];
}

/** One start in this many kills its writer. */
const mortality = 4;
const pauseMs = 150;
const doneMs = 30_000;
const restMs = 60_000;

/** Starts runs through a process that is killed again and again. No start is ever repeated: only an alarm helps. */
export class Writers implements Loader {
  readonly log = new LoadLog();
  readonly killed: Record<Death, number> = { armed: 0, sent: 0, committed: 0, woken: 0 };
  readonly #options: WritersOptions;
  readonly #commits: string;
  readonly #writer: Replica;
  readonly #stop = new AbortController();
  #note: (note: WriterNote) => void = () => {};
  #loading = Promise.resolve();
  #rounds = 0;
  #deaths = 0;

  constructor(options: WritersOptions) {
    this.#options = options;
    this.#commits = join(options.folder, "commits.txt");
    const program = { file: fileURLToPath(new URL("writer.ts", import.meta.url)), name: "writer" };
    const orders = { ...options.orders, commits: this.#commits };
    const note = (one: unknown): void => this.#note(one as WriterNote);
    this.#writer = new Replica(1, { orders, folder: options.folder, program, note });
  }

  async start(): Promise<void> {
    await this.#writer.start();
    this.#loading = this.#load();
    this.#loading.catch(() => {}); // finish() rejects with it
  }

  pause(): void {}

  async kill(): Promise<void> {
    this.#stop.abort();
    this.#writer.kill();
    await this.#writer.gone();
    await this.#options.client.close();
  }

  /** Nothing follows the last writers but their alarms. */
  async finish(): Promise<void> {
    this.#stop.abort();
    await this.#loading;
    const { client, last } = this.#options;
    for (const [k, death] of last.entries()) {
      await this.#rest();
      await this.#begin({ id: `last-${death}`, flow: "payment", ms: 0 }, death, k === last.length - 1);
    }
    // A write that was sent when its writer died is committed within a transaction bound, or never.
    await systemClock.sleep(client.store.transactionBoundMs);
    const committed = new Set(existsSync(this.#commits) ? readFileSync(this.#commits, "utf8").split("\n") : []);
    for (const { id } of this.log.requested.values()) {
      const exists = async (): Promise<boolean> => (await client.store.read.run(client.tenant, id)) !== undefined;
      if (committed.has(id) || (await persistently(exists))) this.log.note({ type: "acknowledged", id });
    }
    await resendSignals(client, this.log.started);
  }

  /** Waits until no run is live and no alarm is near: the alarm of another process would find what a dead one left. */
  async #rest(): Promise<void> {
    const { client, alarmsNear } = this.#options;
    const until = systemClock.mono() + restMs;
    const isBusy = async (): Promise<boolean> => alarmsNear() > 0 || (await persistently(() => liveRuns(client))) > 0;
    while (systemClock.mono() < until && (await isBusy())) await systemClock.sleep(pauseMs);
  }

  async #load(): Promise<void> {
    const { client, flows, maxLive, random } = this.#options;
    for (; !this.#stop.signal.aborted; await systemClock.sleep(pauseMs, this.#stop.signal)) {
      if ((await persistently(() => liveRuns(client))) >= maxLive) continue;
      const flow = flows[this.#rounds % flows.length]!;
      const id = `${flow}-${++this.#rounds}`;
      const answer = flow === "approval" ? { answer: `yes to ${id}` } : {};
      const isDeadly = this.#rounds % mortality === 0 && this.#options.mortal;
      const death = isDeadly ? deaths[this.#deaths++ % deaths.length] : undefined;
      const run = { id, flow, ms: 100 + random.int(1_500), ...answer };
      await this.#begin(run, death);
      if (run.answer !== undefined) await signalAnswer(client, id, run.answer);
    }
  }

  /** Resolves when the start was acknowledged, or its writer is dead and another one runs. */
  async #begin(run: StartedRun, death: Death | undefined, isLast = false): Promise<void> {
    const { random } = this.#options;
    this.log.note({ type: "requested", run });
    const started = new Promise<boolean>((resolve) => {
      this.#note = ({ id, is }) => {
        if (id !== run.id) return;
        if (is === "started") resolve(true);
        else systemClock.after(random.float() * 10, () => this.#writer.kill());
      };
    });
    if (death !== undefined) this.#writer.expectDeath();
    this.#writer.send({ run, ...(death !== undefined && { death }) });
    const over = new AbortController();
    const late = systemClock.sleep(doneMs, over.signal).then(() => "late" as const);
    const end = await Promise.race([started, this.#writer.gone().then(() => "dead" as const), late]);
    over.abort();
    if (end === "late") throw new Error(`the start of ${run.id} took ${doneMs} ms`);
    if (end === true) this.log.note({ type: "acknowledged", id: run.id });
    if (death === undefined) return;
    // An acknowledged start may still owe its wake-up.
    if (end === true) await Promise.race([this.#writer.gone(), systemClock.sleep(500)]);
    this.#writer.kill();
    await this.#writer.gone();
    if (!isLast) await this.#writer.start();
    this.killed[death]++;
    const outcome = [isLast ? "nothing followed it but its alarm" : "another writer started"];
    this.#options.injections().push({ kind: writerKind, effective: true, hit: [deathTexts[death]], outcome });
  }
}
