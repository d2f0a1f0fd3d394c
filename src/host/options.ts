import type { Clock } from "../base/clock.ts";
import type { Duration } from "../base/duration.ts";
import { type Log, type LogOption, logLevels, logOf } from "../base/log.ts";
import { isFitNode, oldestNode } from "../base/node-version.ts";
import type { Random } from "../base/random.ts";
import { errorFields } from "../base/reason.ts";
import type { Tracer } from "../base/trace.ts";
import type { RemoteOptions } from "../client/remote.ts";
import type { RunDriverOptions } from "../engine/run-driver.ts";
import { TapeError } from "../model/errors.ts";
import type { GateDefinition } from "../sdk/gate.ts";
import type { StartTiming } from "../sdk/start-options.ts";
import type { OwnTransaction } from "../sdk/transaction.ts";
import { assertKnownKeys, assertName, booleanOr, durationOrThrow, numberOf, shown, textOr } from "../sdk/validate.ts";
import type { Runner } from "../sdk/workflow.ts";
import type { PayloadCodec, RedactPayload } from "../seal/payload-codec.ts";
import type { Store, TransactionOps } from "../store/contract/store.ts";
import type { MetricsOptions } from "./process-metrics.ts";
import { type ReactorsByName, reactorSpecs } from "./reactor-options.ts";
import { checkRetention, type RetentionOptions } from "./retention.ts";
import { checkServerless, type ServerlessOptions } from "./serverless.ts";

/** What `Tape.open` needs: a store, a runner, and settings. */
export interface AppOptions<App> {
  /** A store URL, or an open store (which then stays open). */
  readonly store: string | Store;
  /** The workflows and effects that this process executes. */
  readonly runner: Runner;
  /** The tenant of all runs of this app. Default "default", or that of the token. */
  readonly tenant?: string;
  /** Runs driven at once by this process. Default 200. */
  readonly concurrency?: number;
  /**
   * Settings of the reactors, and reactors of your own, by name. A name with `false` is not run here. Default: the five
   * built-in ones.
   */
  readonly reactors?: ReactorsByName<App>;
  /** How long a lease lasts without a renewal: so long a crashed process blocks its runs. Default 30 s. */
  readonly leaseTtl?: Duration;
  /** How long a replay waits for the workflow to request the operation that its journal has next. Default 60 s. */
  readonly replayPatience?: Duration;
  /** A step or decision that takes longer is logged (`run.slow`), once for each name. Default 10 s. */
  readonly slowAfter?: Duration;
  /** The clock; tests inject their own. Default: the machine's. */
  readonly clock?: Clock;
  /** The source of chance; tests inject their own. Default: the machine's. */
  readonly random?: Random;
  /** The minimum level written to stderr, "silent", or a log function. Default: TAPE_LOG_LEVEL, otherwise "warn". */
  readonly log?: LogOption;
  /** Spans of drives and operations, for example {@link openTelemetry}'s. Default: no spans. */
  readonly tracing?: Tracer;
  /** false: this process starts and reads runs but drives nothing. Default true. */
  readonly work?: boolean;
  /** The address under which other systems reach the server: the start of the URLs of callbacks. Default: none. */
  readonly publicUrl?: string;
  /** false: this process stores no process report, and the dashboard does not list it. Default true. */
  readonly report?: boolean;
  /** Where the metrics of this process are published. Default: only by `app.metricsHandler`. */
  readonly metrics?: MetricsOptions;
  /**
   * Encodes payloads before they leave this process, for example {@link aesGcm}: stores and servers need no key.
   * Default: payloads are stored as JSON.
   */
  readonly codec?: PayloadCodec;
  /**
   * What is recorded in place of each payload: the run sees it, too, now and on replay. It must be pure, and redacting
   * twice must change nothing. Default: nothing is redacted.
   */
  readonly redact?: RedactPayload;
  /** Archives and deletes ended runs, in one process at a time. Default: ended runs are kept forever. */
  readonly retention?: RetentionOptions;
  /**
   * For hosts that scale to zero: alarms instead of loops. `work` and `report` then default to false. Default: this
   * process runs loops.
   */
  readonly serverless?: ServerlessOptions;
}

/** How to reach a server, and what this process does there. */
export interface RemoteAppOptions<App>
  extends Omit<RemoteOptions, "log">,
    Omit<AppOptions<App>, "store" | "runner" | "tenant"> {
  /** Drives these workflows and runs the reactors here; without a runner this process only starts and reads runs. */
  readonly runner?: Runner;
}

/** A signal that a start sends. Without a key each start sends it again. */
export interface SignalToStart<T = unknown> {
  /** The gate that receives it. */
  readonly gate: GateDefinition<T>;
  /** What the gate returns. */
  readonly value: T;
  /** Sending the same key again is no second signal. */
  readonly key?: string;
  /** The call that an approval is bound to. */
  readonly binds?: string;
  /** The name of the sender. */
  readonly by?: string;
}

/** Id, labels, budget, starter and queue of a new run, and when it starts. */
export interface StartOptions extends StartTiming {
  /**
   * The run's id, chosen by the caller. Starting it again with the same input returns the same run. Default: a random
   * id.
   */
  readonly id?: string;
  /** Words by which lists find the run. Default: none. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Caps of the run's tree by unit, such as `{ usd: 5 }`. Default: no caps. */
  readonly budget?: Readonly<Record<string, number>>;
  /** Cancels the run if it has not ended this long after it began. Default: the workflow's. */
  readonly deadline?: Duration;
  /**
   * The starter, for gates that the starter may not answer. Through a server the token counts instead. Default: none.
   */
  readonly by?: string;
  /**
   * Sent with the start, or to the run that lives under this id: then its input may differ. All of it, or nothing.
   * Default: none.
   */
  readonly signals?: readonly SignalToStart[];
  /**
   * A connection to the store's database, inside a transaction of yours: the run exists if and only if that commits. No
   * process drives the run before. Default: a transaction of the store's own.
   */
  readonly transaction?: OwnTransaction;
}

/** {@link StartOptions}, and how to stop waiting for the result. */
export interface CallOptions extends Omit<StartOptions, "transaction"> {
  readonly signal?: AbortSignal;
}

/** The options of the start, and those of the wait. */
export function callOptions({ signal, ...start }: CallOptions): readonly [StartOptions, { signal?: AbortSignal }] {
  if (Object.hasOwn(start, "transaction")) {
    const message = "call has no option transaction: it would wait for a run that exists only after the commit";
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "transaction" });
  }
  return [start, signal === undefined ? {} : { signal }];
}

/** Key, binding, author and transaction of a signal. */
export interface SignalOptions {
  /** Sending the same key again is no second signal. Default: each call is a signal. */
  readonly key?: string;
  /** The call that an approval is bound to, as the open gate shows it. Default: not bound. */
  readonly binds?: string | undefined;
  /**
   * TAPE_GATE_STALE, and nothing is sent, unless an open gate has exactly these `binds` and no other answer with
   * `mustMatch` was first. Without it the signal waits for a gate that it matches. Default false.
   */
  readonly mustMatch?: boolean;
  /** The name of the sender, for gates with approvers. Through a server the token counts instead. Default: none. */
  readonly by?: string;
  /**
   * As in {@link StartOptions}: the signal is sent if and only if your transaction commits. Default: a transaction of
   * the store's own.
   */
  readonly transaction?: OwnTransaction;
}

// Options are checked before a store is opened: a mistyped option must not silently mean its default.

const workKeys = [
  ...["runner", "concurrency", "reactors", "leaseTtl", "replayPatience", "slowAfter", "clock", "random"],
  ...["log", "tracing", "work", "report", "publicUrl", "metrics", "serverless", "codec", "redact", "retention"],
];
const openKeys = [...workKeys, "store", "tenant"];
const connectKeys = [...workKeys, "token", "tls", "allowPlain", "retryForMs", "exchange"];
const hints = {
  workflows: "pass runner: createRunner({ workflows })",
  effects: "pass runner: createRunner({ workflows, effects })",
  url: 'pass store: a URL such as "sqlite:./tape.db"',
};

export function checkOpenOptions<App>(options: AppOptions<App>): void {
  assertKnownKeys("Tape.open", options, openKeys, hints);
  if (typeof options.store !== "string" && !isStore(options.store)) {
    const message = `Tape.open: store is a URL such as "sqlite:./tape.db" or an open store, not ${shown(options.store)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "store" });
  }
  assertRunner("Tape.open", options.runner);
  if (options.tenant !== undefined) assertName("Tape.open: tenant", options.tenant);
  checkWork("Tape.open", options);
}

export function checkConnectOptions<App>(url: unknown, options: RemoteAppOptions<App>): void {
  assertKnownKeys("Tape.connect", options, connectKeys, {
    ...hints,
    store: "the server's address is the first argument",
    tenant: "the token determines the tenant",
  });
  const addresses = Array.isArray(url) ? url : [url];
  if (addresses.length === 0 || addresses.some((address) => typeof address !== "string" || address === "")) {
    const message = `Tape.connect: the address is a URL such as "https://tape.example", not ${shown(url)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "url" });
  }
  if (options.runner !== undefined) assertRunner("Tape.connect", options.runner);
  checkWork("Tape.connect", options);
}

/** Driving runs requires a runner made by `createRunner`. */
export function assertRunner(subject: string, runner: unknown): asserts runner is Runner {
  const { workflows, effects } = (runner ?? {}) as Partial<Runner>;
  if (workflows instanceof Map && effects instanceof Map) return;
  const message = `${subject}: runner is what createRunner({ workflows: […] }) returns, not ${shown(runner)}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "runner" });
}

export function checkConcurrency(subject: string, concurrency: number | undefined): void {
  numberOf(subject, "concurrency", concurrency, 1, { min: 1, max: 100_000 });
}

function checkWork<App>(subject: string, options: Omit<AppOptions<App>, "store" | "runner">): void {
  const { concurrency, leaseTtl, replayPatience, slowAfter, work, report, publicUrl, reactors } = options;
  if (reactors !== undefined) {
    reactorSpecs(subject, reactors, () => undefined as App);
    if (work === false) {
      const message = `${subject}: reactors are run by a process that works: leave work out`;
      throw new TapeError("TAPE_BAD_INPUT", message, { field: "reactors" });
    }
  }
  checkConcurrency(subject, concurrency);
  if (leaseTtl !== undefined) durationOrThrow(subject, "leaseTtl", leaseTtl);
  if (replayPatience !== undefined) durationOrThrow(subject, "replayPatience", replayPatience, 1);
  if (slowAfter !== undefined) durationOrThrow(subject, "slowAfter", slowAfter, 1);
  booleanOr(subject, "work", work);
  booleanOr(subject, "report", report);
  checkPublicUrl(subject, publicUrl);
  checkMetrics(subject, options.metrics);
  checkCodec(subject, options);
  checkRetention(subject, options.retention);
  checkServerless(subject, options.serverless);
  appLog(options.log, subject);
}

function checkMetrics(subject: string, metrics: MetricsOptions | undefined): void {
  if (metrics === undefined) return;
  assertKnownKeys(`${subject}: metrics`, metrics, ["listen", "export"]);
  textOr(subject, "metrics.listen", metrics.listen);
  if (metrics.export === undefined || typeof metrics.export === "function") return;
  const message = `${subject}: metrics.export is what openTelemetryMetrics(api) returns, not ${shown(metrics.export)}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "metrics.export" });
}

function checkCodec(subject: string, { codec, redact }: Pick<AppOptions<never>, "codec" | "redact">): void {
  const { encode, decode, hash } = (codec ?? {}) as Partial<PayloadCodec>;
  if (codec !== undefined && [encode, decode, hash].some((method) => typeof method !== "function")) {
    const message = `${subject}: codec is { encode, decode, hash }, such as aesGcm({ … }), not ${shown(codec)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "codec" });
  }
  if (redact === undefined || typeof redact === "function") return;
  throw new TapeError("TAPE_BAD_INPUT", `${subject}: redact is a function, not ${shown(redact)}`, { field: "redact" });
}

function checkPublicUrl(subject: string, url: unknown): void {
  if (url === undefined || (typeof url === "string" && /^https?:\/\/[^/?#]+[^?#]*$/.test(url))) return;
  const message = `${subject}: publicUrl is an address such as "https://tape.example", not ${shown(url)}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "publicUrl" });
}

/** The log of an app: the given one, otherwise stderr from the level of TAPE_LOG_LEVEL, otherwise from warn. */
export function appLog(given: LogOption | undefined, subject = "the app"): Log {
  const option = given ?? process.env.TAPE_LOG_LEVEL;
  const levels: readonly unknown[] = [undefined, "silent", ...logLevels];
  if (typeof option === "function" || levels.includes(option)) return logOf(option as LogOption | undefined);
  const field = given === undefined ? "TAPE_LOG_LEVEL" : "log";
  const choices = ["silent", ...logLevels].map((level) => `"${level}"`).join(", ");
  throw new TapeError("TAPE_BAD_INPUT", `${subject}: ${field} is ${choices} or a function, not ${shown(option)}`, {
    field,
  });
}

/** Logged once per process, however many apps it opens. */
let warnedOfNode = false;

export function warnOfOldNode(log: Log, version = process.versions.node): void {
  if (isFitNode(version) || (warnedOfNode && version === process.versions.node)) return;
  warnedOfNode = true;
  const error = new TapeError("TAPE_NODE_OUTDATED", `Node ${version} is too old: ${oldestNode} is required`, {
    version,
  });
  log("warn", "node.outdated", { ...errorFields(error) });
}

/** The store's writes inside a transaction of the caller. */
export function withinOf(store: Store): TransactionOps {
  if (store.within !== undefined) return store.within;
  const message = "the store is behind a server: no transaction of this process can contain its records";
  throw new TapeError("TAPE_OTHER_DATABASE", message, { field: "transaction" });
}

function isStore(store: unknown): store is Store {
  if (typeof store !== "object" || store === null) return false;
  return ["intake", "claim", "fenced", "read"].every((group) => group in store);
}

/** Caps in whole millionths of their units. */
export function millionths(budget: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(budget).map(([unit, cap]) => [unit, Math.round(cap * 1_000_000)]));
}

/** What the run driver needs of an app's options. */
export function drivingOptions(
  options: Pick<Partial<AppOptions<never>>, "replayPatience" | "slowAfter" | "publicUrl" | "tracing">,
  counting: Pick<RunDriverOptions, "onModelCall" | "onReplayed"> = {},
): Pick<RunDriverOptions, "onModelCall" | "onReplayed"> & {
  readonly patienceMs?: number;
  readonly slowMs?: number;
  readonly publicUrl?: string;
  readonly tracing?: Tracer;
} {
  const { replayPatience, slowAfter, publicUrl, tracing } = options;
  return {
    ...(tracing !== undefined && { tracing }),
    ...counting,
    ...(replayPatience !== undefined && {
      patienceMs: durationOrThrow("the app", "replayPatience", replayPatience, 1),
    }),
    ...(slowAfter !== undefined && { slowMs: durationOrThrow("the app", "slowAfter", slowAfter, 1) }),
    ...(publicUrl !== undefined && { publicUrl: publicUrl.replace(/\/+$/, "") }),
  };
}

/** The credential of a server belongs to one tenant. */
export function assertTenant(own: string, tenant: string): void {
  if (tenant === own) return;
  const message = `Tape.open: the store's token belongs to tenant ${own}, not to ${tenant}: leave tenant out`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "tenant" });
}
