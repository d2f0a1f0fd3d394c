import type { Duration } from "../base/duration.ts";
import { suggest } from "../base/suggest.ts";
import { contradictions } from "../config/relations.ts";
import { builtIns, configSchema, type ReactorSettings } from "../config/schema.ts";
import { TapeError } from "../model/errors.ts";
import type { ReactorContext, ReactorHandler } from "../reactor/custom.ts";
import { assertKnownKeys, durationOrThrow, shown } from "../sdk/validate.ts";
import type { ReactorSpec } from "./reactors.ts";

/** Settings of one reactor, with the meaning and the bounds of `tape.reactors.NAME` in tape.yaml. */
export interface ReactorOptions<App = unknown> {
  /** Whether this process runs it. Default true. */
  readonly enabled?: boolean;
  /** Your function: a custom reactor, or under a built-in name its replacement. */
  readonly handler?: ReactorHandler<App>;
  /** Maximum number of items claimed in one poll. Default 50. */
  readonly batch?: number;
  /** Maximum number of items processed at once. Default 50; recovery: the app's `concurrency`. */
  readonly concurrency?: number;
  /**
   * Maximum number of those for one connector, or for one effect without a connector. Default: half of `concurrency`.
   */
  readonly perConnector?: number;
  /** Lifetime of an item's lease without renewal. Default: the app's. */
  readonly leaseTtl?: Duration;
  /** Interval between renewals of a lease. Default: a third of its lifetime. */
  readonly heartbeat?: Duration;
  /** Pauses between attempts on a failing item. Default 1 s to 60 s, doubled each time. */
  readonly backoff?: { readonly base?: Duration; readonly cap?: Duration; readonly factor?: number };
  /** Pauses of a process that came too late to take over an expired lease. Default 1 s to 10 s. */
  readonly takeover?: { readonly base?: Duration; readonly cap?: Duration };
  /** After this many failed terms in a row, an item is parked for an hour. Default "unlimited". */
  readonly maxAttempts?: number | "unlimited";
  /** Only with a handler: a call that reports no progress for longer loses its lease. Default: no limit. */
  readonly maxStall?: Duration;
  /**
   * Only for the reconciler: observes an outbox effect that has been due for longer, once, before it is sent. Default:
   * never.
   */
  readonly pendingAfter?: Duration;
  /**
   * Polls at least this often while idle; for a custom reactor, the interval between its calls. Default 5 s, or 60 s
   * for a custom reactor.
   */
  readonly interval?: Duration;
}

/** Reactors by name; `false` disables one. */
export type ReactorsByName<App = unknown> = Readonly<Record<string, ReactorOptions<App> | false>>;

const seconds = 1_000;
/** Each option, its setting in tape.yaml, and the setting's unit in milliseconds if the option is a duration. */
const settingsOf: Readonly<Record<string, readonly [setting: string, unitMs?: number]>> = {
  enabled: ["enabled"],
  batch: ["batch"],
  concurrency: ["concurrency"],
  perConnector: ["per_connector"],
  leaseTtl: ["lease_ttl_s", seconds],
  heartbeat: ["heartbeat_s", seconds],
  maxAttempts: ["max_attempts"],
  maxStall: ["max_stall_s", seconds],
  pendingAfter: ["pending_after_s", seconds],
  interval: ["interval_ms", 1],
};
const pauseSettings: typeof settingsOf = { base: ["base_ms", 1], cap: ["cap_ms", 1], factor: ["factor"] };

export interface ReactorDefaults {
  /** Lifetime of leases; absent: 30 s. */
  readonly ttlMs?: number;
  /** Runs driven at once; absent: 50. */
  readonly concurrency?: number;
}

/**
 * The reactors to run: the five built-in ones with their options, and custom ones. `only` names those to run. A built-in
 * reactor without options keeps the defaults of a program.
 */
export function reactorSpecs<App>(
  subject: string,
  given: ReactorsByName<App> = {},
  app: () => App,
  { only, ...defaults }: ReactorDefaults & { readonly only?: readonly string[] | undefined } = {},
): ReactorSpec[] {
  assertKnownKeys(`reactors of ${subject}`, given, Object.keys(given));
  const names = [...new Set([...builtIns, ...Object.keys(given)])];
  if (only !== undefined) assertKnown(subject, only, names);
  const settings = parsed(subject, given, defaults);
  const chosen = names.filter((name) => only?.includes(name) ?? isEnabled(given[name]));
  return chosen.map((name) => {
    const options = given[name];
    const handler = options === false ? undefined : options?.handler;
    return {
      name,
      ...(settings.has(name) && { settings: settings.get(name)! }),
      ...(handler !== undefined && { custom: (context: ReactorContext) => handler(app(), context) }),
    };
  });
}

const isEnabled = (options: ReactorOptions<never> | false | undefined): boolean =>
  options !== false && options?.enabled !== false;

export function assertKnown(subject: string, only: readonly string[], names: readonly string[]): void {
  if (!Array.isArray(only) || only.length === 0) {
    throw new TapeError("TAPE_BAD_INPUT", `${subject}: only is a list of reactors, not ${shown(only)}`, {
      field: "only",
    });
  }
  for (const name of only) {
    if (names.includes(name)) continue;
    const near = suggest(name, names);
    const hint = near === undefined ? `; the reactors are ${names.join(", ")}` : `; did you mean ${near}?`;
    throw new TapeError("TAPE_BAD_INPUT", `${subject}: unknown reactor ${name}${hint}`, { field: "only", name });
  }
}

/** The settings of every reactor that has options, checked by the rules of tape.yaml. */
function parsed<App>(
  subject: string,
  given: ReactorsByName<App>,
  defaults: ReactorDefaults,
): ReadonlyMap<string, ReactorSettings> {
  const raw: Record<string, unknown> = {};
  for (const [name, options] of Object.entries(given)) {
    if (options === false) continue;
    const { handler, ...tuning } = checked(subject, name, options);
    const isBuiltIn = builtIns.some((known) => known === name);
    if (handler === undefined && !isBuiltIn) {
      const near = suggest(name, builtIns);
      const hint = near === undefined ? "" : `; did you mean ${near}?`;
      const message = `${subject}: reactor ${name} has no handler${hint}`;
      throw new TapeError("TAPE_BAD_INPUT", message, { field: `reactors.${name}` });
    }
    if (isBuiltIn && Object.keys(tuning).length === 0) continue;
    // The schema wants a reference where a program passes the function.
    raw[name] = {
      ...withDefaults(name, defaults),
      ...tuning,
      ...(handler !== undefined && { handler: "program#handler" }),
    };
  }
  const result = configSchema.safeParse({ tape: { reactors: raw } });
  const [issue] = result.error?.issues ?? [];
  if (issue !== undefined) throw refusal(subject, issue.path.slice(2).map(String), issue.message);
  const [wrong] = contradictions(result.data!);
  if (wrong !== undefined) throw refusal(subject, wrong.path.slice(2), wrong.message);
  return new Map(Object.keys(raw).map((name) => [name, result.data!.tape.reactors[name] as ReactorSettings]));
}

function withDefaults(name: string, { ttlMs, concurrency }: ReactorDefaults): Record<string, unknown> {
  return {
    ...(ttlMs !== undefined && { lease_ttl_s: ttlMs / seconds }),
    ...(name === "recovery" && concurrency !== undefined && { concurrency }),
  };
}

/** The options as settings of tape.yaml, and the handler. */
function checked<App>(
  subject: string,
  name: string,
  options: ReactorOptions<App>,
): Record<string, unknown> & { handler?: ReactorHandler<App> } {
  const about = `${subject}: reactors.${name}`;
  assertKnownKeys(about, options, [...Object.keys(settingsOf), "backoff", "takeover", "handler"], {
    lease_attempts: "it is always unlimited",
  });
  const { backoff, takeover, handler, ...plain } = options;
  if (handler !== undefined && typeof handler !== "function") {
    throw new TapeError("TAPE_BAD_INPUT", `${about}: handler is a function, not ${shown(handler)}`, {
      field: "handler",
    });
  }
  const pauses = (field: string, given: object | undefined, known: readonly string[]): object => {
    if (given === undefined) return {};
    assertKnownKeys(`${about}.${field}`, given, known);
    return { [field]: converted(`${about}.${field}`, given, pauseSettings) };
  };
  return {
    ...converted(about, plain, settingsOf),
    ...pauses("backoff", backoff, ["base", "cap", "factor"]),
    ...pauses("takeover", takeover, ["base", "cap"]),
    ...(handler !== undefined && { handler }),
  };
}

function converted(about: string, options: object, settings: typeof settingsOf): Record<string, unknown> {
  const entries = Object.entries(options).flatMap(([option, value]: [string, unknown]) => {
    if (value === undefined) return [];
    const [setting, unitMs] = settings[option]!;
    if (unitMs === undefined) return [[setting, value]];
    const ms = durationOrThrow(about, option, value as Duration);
    return [[setting, unitMs === 1 ? Math.ceil(ms) : ms / unitMs]];
  });
  return Object.fromEntries(entries) as Record<string, unknown>;
}

/** The message names the option as it was written. */
function refusal(subject: string, [name = "", ...path]: readonly string[], message: string): TapeError {
  const tables = { ...settingsOf, ...pauseSettings };
  const option = (setting: string): string =>
    Object.entries(tables).find(([, [known]]) => known === setting)?.[0] ?? setting;
  const field = ["reactors", name, ...path.map(option)].join(".");
  return new TapeError("TAPE_BAD_INPUT", `${subject}: ${field}: ${message}`, { field });
}
