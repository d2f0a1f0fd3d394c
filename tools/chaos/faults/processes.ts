import { systemClock } from "../../../src/base/clock.ts";
import type { Replica } from "../replicas.ts";
import { anyOf, type Deployment, type Fault, holding, targets } from "../strike.ts";
import type { Scene, Stage } from "../world.ts";

type Kind = "kill" | "pause";
/**
 * Where a fault waits for somebody: in an act, just before the deed or just after it, or where a timer falls due; or
 * whom it looks for: the holder of the singleton, or one that stops itself when it is about to send, for a process cannot
 * be stopped from outside between the look at its lease and the request, but for luck.
 */
type Moment = Stage | "due" | "leading" | "sending" | undefined;

/** How long a fault waits for somebody to be in the middle of an act, before it strikes anywhere. */
const patienceMs = 400;
/** How long it waits for one to send something: each does so every second or so. */
const sendingMs = 2_000;
const lookMs = 15;
/** From when a timer falls due to when it has been fired, roughly. */
const firingMs = 15;

export const killKind = "kill -9";
export const pauseKind = "SIGSTOP";

/** What also the shortest round must have seen; chance goes on from there. */
const overture: Readonly<Record<Kind, readonly Moment[]>> = {
  kill: ["after", "before", "due"],
  pause: ["before", "leading", "after"],
};
const moments: Readonly<Record<Kind, readonly Moment[]>> = {
  kill: ["before", "after", "due", "leading", undefined],
  pause: ["before", "after", "due", "leading", "sending", undefined],
};
const words: Readonly<Record<Exclude<Moment, undefined>, string>> = {
  before: "just before the deed",
  after: "just after the deed",
  due: "where a timer fell due",
  leading: "while it led",
  sending: "about to send",
};

/** Kills and stops processes, at random or in the very middle of an act. */
export function processFaults(deployment: Deployment): Fault[] {
  const striker = new Striker(deployment);
  return [
    {
      kind: killKind,
      counts: "the process held leases or was inside an act",
      // A start costs more than a second of a small machine: killing more often would only test Node's start.
      weight: 2,
      first: overture.kill.length,
      play: () => striker.play("kill"),
    },
    {
      kind: pauseKind,
      counts: "the process held leases and was stopped for longer than their TTL",
      weight: 4,
      first: overture.pause.length,
      play: () => striker.play("pause"),
    },
  ];
}

class Striker {
  readonly #deployment: Deployment;
  readonly #struck = new Set<string>();
  readonly #drawn: Record<Kind, number> = { kill: 0, pause: 0 };
  #armed: { readonly kind: Kind; readonly stage: Stage; readonly fired: () => void } | undefined;

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
    deployment.world.onScene = (scene) => this.#atScene(scene);
  }

  async play(kind: Kind): Promise<void> {
    const { random } = this.#deployment;
    if (targets(this.#deployment).length === 0) return;
    const planned = overture[kind];
    const drawn = this.#drawn[kind]++;
    const moment = drawn < planned.length ? planned[drawn] : anyOf(moments[kind], random);
    if (moment === undefined) this.#anywhere(kind, undefined);
    else if (moment === "due") await this.#atTimer(kind);
    else if (moment === "leading") await this.#leader(kind);
    else if (moment === "sending") await this.#sender();
    else await this.#inAct(kind, moment);
  }

  #anywhere(kind: Kind, moment: Moment): void {
    const replica = anyOf(targets(this.#deployment), this.#deployment.random);
    if (replica !== undefined) this.#strike(kind, replica, moment);
  }

  /** Strikes somebody just when the next timer is about to be fired: one of them is doing it. */
  async #atTimer(kind: Kind): Promise<void> {
    const { world, random } = this.#deployment;
    const now = systemClock.wall();
    const next = Math.min(...world.due.filter((at) => at > now));
    const known = next - now <= patienceMs;
    if (known) await systemClock.sleep(next - now + random.int(firingMs));
    this.#anywhere(kind, known ? "due" : undefined);
  }

  /** Strikes the holder of the singleton, who acts on when it wakes up, until it learns that it is not any more. */
  async #leader(kind: Kind): Promise<void> {
    for (const replica of targets(this.#deployment)) {
      const leases = await this.#deployment.leasesOf(replica.label);
      if (leases.singleton !== undefined && replica.up) return this.#strike(kind, replica, "leading");
    }
    this.#anywhere(kind, undefined);
  }

  /** Has somebody stop between the look at its lease and the request, and wakes it when another has had its turn. */
  async #sender(): Promise<void> {
    const replica = anyOf(targets(this.#deployment), this.#deployment.random);
    if (replica === undefined) return;
    replica.tell("stop before sending");
    const until = systemClock.mono() + sendingMs;
    while (!replica.stands && replica.up && systemClock.mono() < until) await systemClock.sleep(lookMs);
    replica.tell("go on");
    if (replica.up) this.#strike("pause", replica, replica.stands ? "sending" : undefined);
  }

  /** Strikes whoever is next in the middle of an act; each run is hit so only once, or it would look like poison. */
  async #inAct(kind: Kind, stage: Stage): Promise<void> {
    const struck = new AbortController();
    this.#armed = { kind, stage, fired: () => struck.abort() };
    await systemClock.sleep(patienceMs, struck.signal);
    if (struck.signal.aborted) return;
    this.#armed = undefined;
    this.#anywhere(kind, undefined);
  }

  #atScene({ stage, worker, run }: Scene): void {
    const armed = this.#armed;
    if (armed === undefined || armed.stage !== stage || this.#struck.has(run)) return;
    const replica = targets(this.#deployment).find(({ label }) => label === worker);
    if (replica === undefined) return;
    this.#armed = undefined;
    this.#struck.add(run);
    this.#strike(armed.kind, replica, stage);
    armed.fired();
  }

  #strike(kind: Kind, replica: Replica, moment: Moment): void {
    const { world, ttlMs, random, strikes } = this.#deployment;
    const worker = replica.label;
    const acts = world.openOf(worker);
    // The first one outlives its leases; of the others some do and some do not.
    const long = this.#drawn.pause <= 1 || moment === "leading";
    const terms = moment === "sending" ? 2 : long ? 1.4 : 0.2 + 1.6 * random.float();
    const pausedMs = kind === "kill" ? 0 : Math.round(ttlMs * terms);
    const backMs = 50 + random.int(300);
    if (kind === "kill") replica.kill();
    else replica.pause();
    const mend = async (): Promise<void> => {
      const leases = await this.#deployment.leasesOf(worker);
      const held = Object.keys(leases).length > 0;
      const past = pausedMs > ttlMs;
      await systemClock.sleep(kind === "kill" ? backMs : pausedMs);
      if (kind === "kill") await replica.start();
      else if (replica.paused) replica.wake();
      strikes.push({
        kind: kind === "kill" ? killKind : pauseKind,
        bitten: kind === "kill" ? held || acts > 0 : held && past,
        hit: [
          ...(acts > 0 ? ["inside an act"] : []),
          ...(moment === undefined ? [] : [words[moment]]),
          ...(held ? holding(leases) : ["holding nothing"]),
        ],
        outcome: kind === "kill" ? ["started again"] : [past ? "woken past the end of its leases" : "woken in time"],
      });
    };
    this.#deployment.mend(mend());
  }
}
