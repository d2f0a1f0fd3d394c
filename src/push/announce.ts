import { aborted } from "../base/abort.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { type Log, logOf } from "../base/log.ts";
import { type Random, systemRandom } from "../base/random.ts";
import { servedElsewhere } from "../host/on-demand.ts";
import { remoteLoop } from "../host/reactors.ts";
import type { Singleton } from "../host/singleton/singleton.ts";
import type { Tape } from "../host/tape.ts";
import { TapeError } from "../model/errors.ts";
import type { Waker } from "../reactor/remote.ts";
import { assertKnownKeys, numberOf } from "../sdk/validate.ts";

/** Which reactors run behind handlers, and how they are woken. */
export interface AnnounceOptions {
  /** The reactors that run elsewhere. */
  readonly reactors: readonly string[];
  readonly waker: Waker;
  /** `batch` of the handlers: one request is sent for that many due items. Default 10. */
  readonly batch?: number;
  readonly log?: Log;
  readonly clock?: Clock;
  readonly random?: Random;
}

/**
 * Follows what is due in the store and wakes the handlers. Any number of processes may announce: one of them leads, as a
 * singleton named `announcer`. It keeps no position and claims nothing, so nothing is lost when it dies.
 *
 * @example
 * const announcer = await announce(app, { reactors: ["recovery", "outbox"], waker });
 */
export async function announce(app: Tape, options: AnnounceOptions): Promise<Singleton> {
  assertKnownKeys("announce", options, ["reactors", "waker", "batch", "log", "clock", "random"]);
  const { reactors: names, waker, log = logOf("warn"), clock = systemClock, random = systemRandom } = options;
  if (!Array.isArray(names) || names.length === 0 || names.length > 100) {
    throw new TapeError("TAPE_BAD_INPUT", "announce: reactors must name 1 to 100 reactors", { field: "reactors" });
  }
  if (typeof waker?.wake !== "function") {
    throw new TapeError("TAPE_BAD_INPUT", "announce: waker is required", { field: "waker" });
  }
  const batch = numberOf("announce", "batch", options.batch, 10, { min: 1, max: 1_000 });
  const { store, tenant } = app;
  servedElsewhere(app, names);
  return app.singleton("announcer", async ({ abortSignal }) => {
    const queues = (await app.queues.list()).map(({ name }) => name);
    const loop = remoteLoop(names, { waker, batch, store, tenant, clock, random, log, queues });
    await loop.start();
    log("info", "announcer.started", { reactors: names, waker: waker.label });
    await aborted(abortSignal);
    await loop.stop();
  });
}
