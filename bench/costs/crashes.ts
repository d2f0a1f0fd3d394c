import { systemClock } from "../../src/base/clock.ts";
import { type Kind, type Point, sleepMs } from "./points.ts";
import type { Scene, WorkerProcess } from "./scene.ts";

/** What one crash cost. */
export interface Cost {
  /** From the crash (of a sleep: from the end of the sleep) until the run has continued. */
  readonly delayMs: number;
  /** How often the effect's body called the upstream, and how often the step before it ran. */
  readonly calls: number;
  readonly steps: number;
  /** The run's result, or the code of its error. */
  readonly outcome: string;
}

export interface Crash {
  readonly name: string;
  measure(scene: Scene, phaseMs: number): Promise<Cost>;
}

const now = (): number => systemClock.mono();

async function ended(worker: WorkerProcess, id: string): Promise<string> {
  worker.send({ do: "finish", id });
  return (await worker.receive("ended")).outcome;
}

const costOf = ({ upstream }: Scene, delayMs: number, outcome: string): Cost => ({
  delayMs,
  calls: upstream.count("call"),
  steps: upstream.count("step"),
  outcome,
});

/** A figure is worth nothing if the run broke a promise: an effect in doubt is not sent twice, and the run ends as it should. */
function asPromised(cost: Cost, maxCalls: number, outcome: string): Cost {
  if (cost.calls >= 1 && cost.calls <= maxCalls && cost.outcome === outcome) return cost;
  throw new Error(`expected at most ${maxCalls} calls and ${outcome}, got ${JSON.stringify(cost)}`);
}

interface EffectCrash {
  readonly kind: Kind;
  readonly dispatch?: "inline" | "outbox";
  readonly fails?: boolean;
}

/** What shows that the run has continued: the successor's next request. */
const next = (point: Point, fails: boolean): string => (point === "step" ? "step" : fails ? "compensate" : "after");

/** Worker A is killed at a point of a run. Worker B, which has been idle beside it, takes over. */
function killedAt(name: string, point: Point, options: EffectCrash): Crash {
  const { kind, dispatch = "inline", fails = false } = options;
  return {
    name,
    async measure(scene, phaseMs) {
      const more = { kind, dispatch, fails };
      const a = await scene.worker("a", more);
      let killed = 0;
      let b: WorkerProcess | undefined;
      const what = point === "sent" ? "call" : point === "compensating" ? "compensate" : point;
      const crash = new Promise<void>((resolve) => {
        const kill = async (): Promise<void> => {
          // B starts while A is held, so that A has the run. The phase shifts the crash between two heartbeats of A.
          b = await scene.worker("b", more);
          await systemClock.sleep(phaseMs);
          a.kill();
          killed = now();
          resolve();
          await new Promise(() => {}); // no answer to a dead process
        };
        scene.upstream.hold(what, "a", kill);
      });
      a.send({ do: "start", id: "work-1" });
      await crash;
      if (kind === "unobserved") {
        const outcome = await ended(b!, "work-1");
        return asPromised(costOf(scene, now() - killed, outcome), 1, "TAPE_RUN_STUCK");
      }
      const at = await scene.upstream.wait(next(point, fails), "b", killed);
      const cost = costOf(scene, at - killed, await ended(b!, "work-1"));
      return asPromised(cost, kind === "idempotent" ? 2 : 1, fails ? "TAPE_RUN_FAILED" : "done");
    },
  };
}

const asleep: Crash = {
  name: "in a sleep",
  async measure(scene, phaseMs) {
    const a = await scene.worker("a");
    a.send({ do: "start", id: "nap-1" });
    const due = (await scene.upstream.wait("step", "a")) + sleepMs;
    const b = await scene.worker("b");
    await systemClock.sleep(phaseMs / 2);
    a.kill();
    const at = await scene.upstream.wait("after", "b");
    return costOf(scene, at - due, await ended(b, "nap-1"));
  },
};

const between: Crash = {
  name: "between runs",
  async measure(scene) {
    const a = await scene.worker("a");
    const b = await scene.worker("b");
    a.kill();
    const from = now();
    b.send({ do: "start", id: "work-1" });
    const at = await scene.upstream.wait("step", "b");
    return costOf(scene, at - from, await ended(b, "work-1"));
  },
};

/** For comparison: A closes in order while its step is running. */
const closed: Crash = {
  name: "no crash: the worker closes in order",
  async measure(scene) {
    const a = await scene.worker("a");
    let b: WorkerProcess | undefined;
    let from = 0;
    const closing = new Promise<void>((resolve) => {
      scene.upstream.hold("step", "a", async () => {
        b = await scene.worker("b");
        a.send({ do: "close", id: "" });
        await systemClock.sleep(500); // the step takes half a second more
        from = now();
        resolve();
      });
    });
    a.send({ do: "start", id: "work-1" });
    await closing;
    const at = await Promise.any([scene.upstream.wait("after", "b"), scene.upstream.wait("after", "a")]);
    return costOf(scene, at - from, await ended(b!, "work-1"));
  },
};

/** The server between worker and store is killed while the run is in a step, whose result it then cannot store. */
const serverStartedAgain: Crash = {
  name: "of the server; from the moment it listens again",
  async measure(scene) {
    const first = await scene.server();
    const a = await scene.worker("a", { store: [first.url] });
    const again = new Promise<number>((resolve) => {
      scene.upstream.hold("step", "a", () => {
        first.process.kill("SIGKILL");
        void systemClock
          .sleep(2_000)
          .then(() => scene.server(first.port))
          .then(() => resolve(now()));
      });
    });
    a.send({ do: "start", id: "work-1" });
    const from = await again;
    const at = await scene.upstream.wait("after", "a");
    return costOf(scene, at - from, await ended(a, "work-1"));
  },
};

const serverOfTwo: Crash = {
  name: "of one of two servers",
  async measure(scene) {
    const [first, second] = [await scene.server(), await scene.server()];
    const a = await scene.worker("a", { store: [first.url, second.url] });
    let from = 0;
    scene.upstream.hold("step", "a", () => {
      first.process.kill("SIGKILL");
      from = now();
    });
    a.send({ do: "start", id: "work-1" });
    const at = await scene.upstream.wait("after", "a");
    return costOf(scene, at - from, await ended(a, "work-1"));
  },
};

const expected = { kind: "observed" } as const;

export const crashes: readonly Crash[] = [
  killedAt("in a step, before the intent", "step", expected),
  killedAt("after the intent, before the call; observed", "intended", expected),
  killedAt("after the intent, before the call; idempotent", "intended", { kind: "idempotent" }),
  killedAt("during the call; observed", "sent", expected),
  killedAt("during the call; idempotent", "sent", { kind: "idempotent" }),
  killedAt("during the call; neither", "sent", { kind: "unobserved" }),
  killedAt("after the response, before the record; observed", "returned", expected),
  killedAt("after the response, before the record; idempotent", "returned", { kind: "idempotent" }),
  killedAt("in an outbox item, during the call; observed", "sent", { kind: "observed", dispatch: "outbox" }),
  killedAt("in an outbox item, during the call; idempotent", "sent", { kind: "idempotent", dispatch: "outbox" }),
  killedAt("in a compensation, during the call; idempotent", "compensating", { kind: "observed", fails: true }),
  asleep,
  between,
  closed,
  serverStartedAgain,
  serverOfTwo,
];
