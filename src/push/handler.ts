import { type Clock, systemClock } from "../base/clock.ts";
import type { Duration } from "../base/duration.ts";
import { type Log, logOf } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import { longestEffectMs, type ReactCounts, type ReactOptions, servedByRequests } from "../host/on-demand.ts";
import type { ProcessMetrics, PushOutcome } from "../host/process-metrics.ts";
import type { SweepCounts, SweepOptions } from "../host/serverless.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { assertKnownKeys, durationOf, numberOf } from "../sdk/validate.ts";
import { decodePush, Unreadable } from "./decode.ts";
import { admitted, type Handler, noContent, problem, unavailable } from "./request.ts";
import type { Verify } from "./verify/verify.ts";
import type { Waker } from "./waker.ts";

/** What a push handler needs of an app. */
export interface PushApp {
  /** Works on what is due for a reactor. */
  react(reactor: string, options: ReactOptions): Promise<ReactCounts>;
  /** For `sweep: true`. */
  sweep?(options: SweepOptions): Promise<SweepCounts>;
  /** Counts requests by reactor and outcome. */
  readonly metrics?: Pick<ProcessMetrics, "countPush">;
}

/** Which requests a push handler accepts, and how much one of them does. */
export interface PushOptions {
  /** The reactors that a request may wake. One that names none of them wakes all of these. */
  readonly reactors?: readonly string[];
  /**
   * Every request sweeps: all reactors, and the alarm for what is due next. For alarms, instead of `reactors`. Default
   * false.
   */
  readonly sweep?: boolean;
  /** Who may call. There is no default. */
  readonly verify: Verify;
  /** How long a request may take. Default 50 s; the host's own limit must be longer by 10 s. */
  readonly within?: Duration;
  /** Items, or runs, that one poll claims. Default 10. */
  readonly batch?: number;
  /** Sends the next wake-up when work is left. Without it, the announcer or an alarm does. */
  readonly waker?: Waker;
  readonly log?: Log;
  readonly clock?: Clock;
}

const known = ["reactors", "sweep", "verify", "within", "batch", "waker", "log", "clock"];
/** A wake-up has no payload worth more. */
const maxBytes = 262_144;
/** After the last claim: its writes, and releasing what has not finished. */
const marginMs = 5_000;

/**
 * A fetch-style handler that wakes reactors: it claims what is due, works on it, releases every lease, and answers 204.
 * A request is only a wake-up. A lost, doubled, late or foreign one therefore does no harm.
 *
 * @example
 * export const handler = pushHandler(app, { reactors: ["recovery"], verify: sharedSecret({ secrets: [process.env.PUSH_SECRET!] }) });
 */
export function pushHandler(app: PushApp, options: PushOptions): Handler {
  assertKnownKeys("pushHandler", options, known);
  const { sweep = false, verify, waker, log = logOf("warn"), clock = systemClock } = options;
  const reactors = sweep ? [] : namesOf(options.reactors);
  const batch = numberOf("pushHandler", "batch", options.batch, 10, { min: 1, max: 1_000 });
  const withinMs = durationOf("pushHandler", "within", options.within, 50_000);
  const neededMs = () => longestEffectMs(app) + marginMs;
  if (withinMs < neededMs()) {
    const message = `pushHandler: within is ${withinMs} ms, and an effect may take ${neededMs() - marginMs} ms; allow ${neededMs()} ms at least`;
    throw new TapeError("TAPE_BAD_TIMING", message, { field: "within" });
  }
  servedByRequests(app, reactors);
  const count = (name: string, outcome: PushOutcome): void => app.metrics?.countPush(name, outcome);
  const onRefused = (outcome: PushOutcome): void => count(noReactor, outcome);
  return admitted({ subject: "pushHandler", verify, log, maxBytes, onRefused }, async ({ headers, body, signal }) => {
    if (sweep) return swept(app, { within: withinMs, signal }, log, count);
    const startedAt = clock.mono();
    const leftMs = (): number => withinMs - (clock.mono() - startedAt);
    const wanted = wantedOf(headers, body, reactors, log);
    if (wanted === undefined) count(noReactor, "unreadable");
    for (const name of wanted ?? []) {
      try {
        const rounds = { app, name, batch, leftMs, neededMs: neededMs(), signal, log };
        const isMore = await hasMore(rounds);
        count(name, isMore ? "more" : "done");
        if (isMore) await wake(waker, name, log);
      } catch (error) {
        return failed(error, log, name, count);
      }
    }
    return noContent();
  });
}

type Count = (name: string, outcome: PushOutcome) => void;
/** As the reactor of a request that wakes none. */
const noReactor = "none";

/** An error makes the alarm service repeat its call. */
async function swept(app: PushApp, options: SweepOptions, log: Log, count: Count): Promise<Response> {
  try {
    if (app.sweep === undefined) throw new TapeError("TAPE_BAD_INPUT", "pushHandler: the app has no sweep");
    await app.sweep(options);
    count("sweep", "done");
    return noContent();
  } catch (error) {
    return failed(error, log, "sweep", count);
  }
}

function namesOf(reactors: readonly string[] | undefined): readonly string[] {
  if (Array.isArray(reactors) && reactors.length > 0 && reactors.every((name) => typeof name === "string"))
    return reactors;
  throw new TapeError("TAPE_BAD_INPUT", "pushHandler: reactors must name at least one reactor", { field: "reactors" });
}

/** A wake-up that cannot be read (undefined) holds nothing that a repetition could save: it wakes nothing, and gets 204. */
function wantedOf(
  headers: Headers,
  body: Uint8Array,
  reactors: readonly string[],
  log: Log,
): readonly string[] | undefined {
  try {
    const wants = decodePush(headers, body).flatMap((event) => event.wants);
    return wants.length === 0 ? reactors : reactors.filter((name) => wants.includes(name));
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    log("warn", "push.unreadable", { reason: error.message, bytes: body.length });
    return undefined;
  }
}

interface Rounds {
  readonly app: PushApp;
  readonly name: string;
  readonly batch: number;
  readonly leftMs: () => number;
  readonly neededMs: number;
  readonly signal: AbortSignal;
  readonly log: Log;
}

/** Polls until nothing is found. Returns whether it stopped for lack of time. */
async function hasMore({ app, name, batch, leftMs, neededMs, signal, log }: Rounds): Promise<boolean> {
  for (;;) {
    if (leftMs() < neededMs || signal.aborted) return true;
    const { found, surrendered } = await app.react(name, { limit: batch, within: Math.floor(leftMs()), signal });
    if (surrendered.length > 0) {
      const next = "Give the reactor a process that always runs (mode: loop), or raise within.";
      log("warn", "push.too_long", { reactor: name, runs: surrendered.slice(0, 10), next });
      return true;
    }
    if (found === 0) return false;
  }
}

/** Work that is left stays due: an announcer or an alarm finds it, so a lost wake-up only delays it. */
async function wake(waker: Waker | undefined, name: string, log: Log): Promise<void> {
  try {
    await waker?.wake(name, 1);
  } catch (error) {
    log("warn", "push.wake_failed", { reactor: name, ...errorFields(error) });
  }
}

/** Never 429: it slows a whole queue of Cloud Tasks. */
function failed(error: unknown, log: Log, name: string, count: Count): Response {
  const later = isTapeError(error) && (error.retry === "later" || error.code === "TAPE_STORE_CLOSED");
  log(later ? "warn" : "error", "push.failed", { ...errorFields(error) });
  count(name, later ? "unavailable" : "failed");
  return later ? unavailable() : problem(500, "the handler failed");
}
