import { systemClock } from "../../../src/base/clock.ts";
import { anyOf, type Deployment, type Fault, holding, targets } from "../fault.ts";
import type { Replica } from "../replicas.ts";
import type { RequestMoment, Stage } from "../world.ts";

type Kind = "kill" | "pause";
/**
 * The moment or process that a fault waits for: just before or just after an effect; when a timer falls due; the holder of
 * the singleton; or a process that stops itself when it is about to send. It does so itself because from outside it could
 * only be stopped by luck between the check of its lease and the request.
 */
type Moment = Stage | "due" | "leading" | "sending" | undefined;

/** How long a fault waits for an effect in progress, before it hits any process. */
const patienceMs = 400;
/** How long it waits for a process to send; each sends about once a second. */
const sendingMs = 2_000;
const checkMs = 15;
/** Roughly from a timer's due time until it has fired. */
const firingMs = 15;

export const killKind = "kill -9";
export const pauseKind = "SIGSTOP";

/** Moments that even the shortest round must hit; later ones are drawn at random. */
const firstMoments: Readonly<Record<Kind, readonly Moment[]>> = {
  kill: ["after", "before", "due"],
  pause: ["before", "leading", "after"],
};
const moments: Readonly<Record<Kind, readonly Moment[]>> = {
  kill: ["before", "after", "due", "leading", undefined],
  pause: ["before", "after", "due", "leading", "sending", undefined],
};
const momentTexts: Readonly<Record<Exclude<Moment, undefined>, string>> = {
  before: "just before the effect",
  after: "just after the effect",
  due: "when a timer fell due",
  leading: "while it held the singleton",
  sending: "about to send",
};

/** Kills and stops processes, at random or during an effect. */
export function processFaults(deployment: Deployment): Fault[] {
  const injector = new ProcessInjector(deployment);
  return [
    {
      kind: killKind,
      effectiveWhen: "the process held leases or was executing an effect",
      // A start takes a small machine more than a second: more kills would only test the start of Node.
      weight: 2,
      initial: firstMoments.kill.length,
      inject: () => injector.inject("kill"),
    },
    {
      kind: pauseKind,
      effectiveWhen: "the process held leases and was stopped for longer than their TTL",
      weight: 4,
      initial: firstMoments.pause.length,
      inject: () => injector.inject("pause"),
    },
  ];
}

class ProcessInjector {
  readonly #deployment: Deployment;
  readonly #hitRuns = new Set<string>();
  readonly #drawn: Record<Kind, number> = { kill: 0, pause: 0 };
  #armed: { readonly kind: Kind; readonly stage: Stage; readonly fired: () => void } | undefined;

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
    deployment.world.onRequest = (moment) => this.#onRequest(moment);
  }

  async inject(kind: Kind): Promise<void> {
    const { random } = this.#deployment;
    if (targets(this.#deployment).length === 0) return;
    const planned = firstMoments[kind];
    const drawn = this.#drawn[kind]++;
    const moment = drawn < planned.length ? planned[drawn] : anyOf(moments[kind], random);
    if (moment === undefined) this.#anywhere(kind, undefined);
    else if (moment === "due") await this.#atTimer(kind);
    else if (moment === "leading") await this.#leader(kind);
    else if (moment === "sending") await this.#sender();
    else await this.#duringEffect(kind, moment);
  }

  #anywhere(kind: Kind, moment: Moment): void {
    const replica = anyOf(targets(this.#deployment), this.#deployment.random);
    if (replica !== undefined) this.#injectInto(kind, replica, moment);
  }

  /** Hits a process when the next timer is about to fire: one of the processes is firing it. */
  async #atTimer(kind: Kind): Promise<void> {
    const { world, random } = this.#deployment;
    const now = systemClock.wall();
    const next = Math.min(...world.due.filter((at) => at > now));
    const known = next - now <= patienceMs;
    if (known) await systemClock.sleep(next - now + random.int(firingMs));
    this.#anywhere(kind, known ? "due" : undefined);
  }

  /** Hits the holder of the singleton, which continues when it wakes up until it learns that it has lost the lease. */
  async #leader(kind: Kind): Promise<void> {
    for (const replica of targets(this.#deployment)) {
      const leases = await this.#deployment.leasesOf(replica.label);
      if (leases.singleton !== undefined && replica.up) return this.#injectInto(kind, replica, "leading");
    }
    this.#anywhere(kind, undefined);
  }

  /** Makes a process stop between the check of its lease and the request, and wakes it after another has taken over. */
  async #sender(): Promise<void> {
    const replica = anyOf(targets(this.#deployment), this.#deployment.random);
    if (replica === undefined) return;
    replica.send("stop before sending");
    const until = systemClock.mono() + sendingMs;
    while (!replica.stopped && replica.up && systemClock.mono() < until) await systemClock.sleep(checkMs);
    replica.send("continue");
    if (replica.up) this.#injectInto("pause", replica, replica.stopped ? "sending" : undefined);
  }

  /** Hits the next process during an effect. Each run is hit only once, otherwise it would look like a poison run. */
  async #duringEffect(kind: Kind, stage: Stage): Promise<void> {
    const hit = new AbortController();
    this.#armed = { kind, stage, fired: () => hit.abort() };
    await systemClock.sleep(patienceMs, hit.signal);
    if (hit.signal.aborted) return;
    this.#armed = undefined;
    this.#anywhere(kind, undefined);
  }

  #onRequest({ stage, worker, run }: RequestMoment): void {
    const armed = this.#armed;
    if (armed === undefined || armed.stage !== stage || this.#hitRuns.has(run)) return;
    const replica = targets(this.#deployment).find(({ label }) => label === worker);
    if (replica === undefined) return;
    this.#armed = undefined;
    this.#hitRuns.add(run);
    this.#injectInto(armed.kind, replica, stage);
    armed.fired();
  }

  #injectInto(kind: Kind, replica: Replica, moment: Moment): void {
    const { world, ttlMs, random, injections } = this.#deployment;
    const worker = replica.label;
    const openRequests = world.openOf(worker);
    // The first pause outlasts the leases; some of the others do.
    const long = this.#drawn.pause <= 1 || moment === "leading";
    const terms = moment === "sending" ? 2 : long ? 1.4 : 0.2 + 1.6 * random.float();
    const pausedMs = kind === "kill" ? 0 : Math.round(ttlMs * terms);
    const backMs = 50 + random.int(300);
    if (kind === "kill") replica.kill();
    else replica.pause();
    const repair = async (): Promise<void> => {
      const leases = await this.#deployment.leasesOf(worker);
      const held = Object.keys(leases).length > 0;
      const past = pausedMs > ttlMs;
      await systemClock.sleep(kind === "kill" ? backMs : pausedMs);
      if (kind === "kill") await replica.start();
      else if (replica.paused) replica.wake();
      injections.push({
        kind: kind === "kill" ? killKind : pauseKind,
        effective: kind === "kill" ? held || openRequests > 0 : held && past,
        hit: [
          ...(openRequests > 0 ? ["during an effect"] : []),
          ...(moment === undefined ? [] : [momentTexts[moment]]),
          ...(held ? holding(leases) : ["holding nothing"]),
        ],
        outcome: kind === "kill" ? ["started again"] : [past ? "woken after its leases expired" : "woken in time"],
      });
    };
    this.#deployment.repair(repair());
  }
}
