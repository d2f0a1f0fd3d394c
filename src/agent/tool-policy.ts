import type { Duration } from "../base/duration.ts";
import { describeThrown } from "../base/thrown.ts";
import type { Approvers } from "../model/approvers.ts";
import { TapeError } from "../model/errors.ts";
import { type Effect, effect } from "../sdk/effect.ts";
import type { EffectContext, EffectOptions } from "../sdk/effect-types.ts";
import { AckLost, DefiniteFailure, NotSent, type Observation } from "../sdk/outcomes.ts";
import { assertKnownKeys, assertName, assertOneOf, booleanOr, durationOf, shown } from "../sdk/validate.ts";
import { plain } from "./plain.ts";

/**
 * How the calls of a tool are made. Its functions receive the input that the model has chosen.
 *
 * @example
 * const pay: ToolPolicy<{ invoice: string; amount: number }> = {
 *   businessKey: (a) => a.invoice,
 *   observe: async (a) => { const found = await bank.find(a.invoice); return found ? outcome.confirmed(found) : outcome.absent(); },
 *   approve: (a) => a.amount > 1_000,
 * };
 */
export interface ToolPolicy<I = unknown>
  extends Pick<
    EffectOptions<I, unknown>,
    "semantics" | "retry" | "timeout" | "settleDelay" | "isDefinite" | "allowUnsafe" | "dispatch"
  > {
  /** At most one call per key, across all runs of the tenant. */
  businessKey?(input: I): string;
  /** Asks the upstream whether the call happened. */
  observe?(input: I, fx: EffectContext): Observation | Promise<Observation>;
  /** Reverses the call if the run fails later. */
  compensate?(input: I, result: unknown, fx: EffectContext): unknown;
  /**
   * true, or true for an input: a gate bound to exactly this call opens before the tool runs. `"framework"`: as the
   * framework's own setting of the tool says. Default false.
   */
  approve?: boolean | "framework" | ((input: I) => boolean | Promise<boolean>);
  /** Who may answer the gate. */
  readonly approvers?: Approvers;
  /** Default: the gate waits without end. */
  readonly approvalTimeout?: Duration;
  /** true: called in the workflow and not recorded. For tools that only compute, and for sub-agents. Default false. */
  readonly local?: boolean;
  /**
   * `"wait"` (default): while the outcome is unknown, the run waits for an observation or an operator. `"report"`: after
   * `reportAfter` the model reads that the outcome is unknown, and the same call is refused until it is settled.
   */
  readonly onUnknown?: "wait" | "report";
  /** Default: one minute more than the time-out. */
  readonly reportAfter?: Duration;
}

/** A ToolPolicy for any input. */
export type AnyToolPolicy = ToolPolicy<never>;

/** The arguments of a tool's effect: the id of the call is part of the hash that an approval is bound to. */
export interface ToolArgs {
  /** The id of the call. */
  readonly call: string;
  /** The input that the model has chosen. */
  readonly input: unknown;
}

/** What the code of a tool receives. */
export interface ToolRun {
  readonly call: string;
  readonly abortSignal: AbortSignal;
  /** undefined for a local tool. */
  readonly fx: EffectContext | undefined;
  /** What the framework passed with the call and no journal can hold. undefined where another process runs the tool. */
  readonly beside: unknown;
}
export type ToolBody = (input: never, run: ToolRun) => unknown;

const policyKeys = [
  ...["semantics", "retry", "timeout", "settleDelay", "isDefinite", "allowUnsafe", "dispatch", "businessKey"],
  ...["observe", "compensate", "approve", "approvers", "approvalTimeout", "local", "onUnknown", "reportAfter"],
];

/** Options of `durableTools`. */
export interface DurableToolsOptions {
  /** true: every tool needs a policy. Default false. */
  readonly strict?: boolean;
}

/** Checks what `durableTools` of each adapter takes. */
export function assertToolKit(
  group: string,
  tools: readonly string[],
  policies: object,
  options: DurableToolsOptions,
): void {
  assertName("durableTools: the group", group);
  assertKnownKeys("durableTools", options, ["strict"]);
  booleanOr("durableTools", "strict", options.strict);
  assertKnownKeys(`durableTools ${group}: the policies`, policies, tools);
}

/** Nothing is known of the tool: it may take long, and after a crash only an operator can say what it did. */
const unknownToolTimeout: Duration = "10m";
const defaultTimeoutMs = 30_000;
const reportMarginMs = 60_000;

/** A policy with its defaults. */
export interface CheckedPolicy {
  readonly given: ToolPolicy<unknown>;
  /** No policy says what a repeated call would do. */
  readonly unknown: boolean;
  readonly reportAfterMs: number;
}

export function checkedPolicy(subject: string, policy: AnyToolPolicy | undefined, strict: boolean): CheckedPolicy {
  const given = (policy ?? {}) as ToolPolicy<unknown>;
  assertKnownKeys(subject, given, policyKeys);
  const { approve, onUnknown = "wait", local } = given;
  if (!["undefined", "boolean", "function"].includes(typeof approve) && approve !== "framework") {
    const message = `${subject}: approve is true, false, "framework" or a function, not ${shown(approve)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "approve" });
  }
  booleanOr(subject, "local", local);
  assertOneOf(subject, "onUnknown", onUnknown, ["wait", "report"]);
  const { semantics, businessKey, observe, compensate, allowUnsafe } = given;
  const unknown =
    local !== true && [semantics, businessKey, observe, compensate, allowUnsafe].every((rule) => rule === undefined);
  if (strict && unknown) {
    const message = `${subject} has no policy: say whether it reads, is idempotent, or how it is observed or compensated`;
    throw new TapeError("TAPE_UNSAFE_EFFECT", message, { effect: subject });
  }
  const timeoutMs = durationOf(subject, "timeout", given.timeout, unknown ? 600_000 : defaultTimeoutMs);
  const reportAfterMs = durationOf(subject, "reportAfter", given.reportAfter, timeoutMs + reportMarginMs);
  return { given, unknown, reportAfterMs };
}

/** The effect of a tool. A local tool has one too, for approvals to be bound to; it is never called. */
export function effectOf(
  name: string,
  body: (args: ToolArgs, fx: EffectContext) => unknown,
  { given, unknown }: CheckedPolicy,
): Effect<ToolArgs, unknown> {
  const { businessKey, observe, compensate } = given;
  const { semantics, retry, timeout, settleDelay, isDefinite, dispatch } = given;
  const unsafe = unknown || given.local === true ? "no policy given" : undefined;
  const options = {
    ...{ semantics, retry, settleDelay, isDefinite, dispatch },
    timeout: timeout ?? (unknown ? unknownToolTimeout : undefined),
    allowUnsafe: given.allowUnsafe ?? unsafe,
    businessKey: businessKey && ((args: ToolArgs) => businessKey(args.input)),
    observe: observe && (async ({ input }: ToolArgs, fx: EffectContext) => plainObservation(await observe(input, fx))),
    compensate:
      compensate && (({ input }: ToolArgs, result: unknown, fx: EffectContext) => compensate(input, result, fx)),
  };
  const set = Object.entries(options).filter(([, value]) => value !== undefined);
  return effect(name, body, Object.fromEntries(set) as EffectOptions<ToolArgs, unknown>);
}

const plainObservation = (found: Observation): Observation =>
  found.observed === "confirmed" || found.observed === "duplicate" ? { ...found, value: plain(found.value) } : found;

/** A tool without a policy that throws has run: its error is its result, and the model reads it. */
export interface ThrownByTool {
  readonly thrown: string;
}

export const thrownKey = "thrownByTool";

/** Runs a tool and makes its result plain. The error of a tool without a policy is returned, see {@link ThrownByTool}. */
export async function plainRun(unknown: boolean, run: () => unknown): Promise<unknown> {
  try {
    return await plainResult(await run());
  } catch (error) {
    const classified = [NotSent, AckLost, DefiniteFailure].some((kind) => error instanceof kind);
    if (!unknown || classified) throw error;
    return { [thrownKey]: describeThrown(error).slice(0, maxThrownChars) };
  }
}

const maxThrownChars = 4_096;
const maxBodyChars = 256 * 1024;

/** A response is read; another stream cannot be stored, and reading it may have no end. */
async function plainResult(value: unknown): Promise<unknown> {
  if (value instanceof Response) return await responseOf(value);
  if (isStream(value)) return { done: true, note: "the result is a stream, which is not stored" };
  return plain(value);
}

const isStream = (value: unknown): boolean =>
  typeof value === "object" && value !== null && (value instanceof ReadableStream || Symbol.asyncIterator in value);

async function responseOf(response: Response): Promise<unknown> {
  const { status, ok } = response;
  try {
    const text = response.bodyUsed ? "" : await response.text();
    const json = response.headers.get("content-type")?.includes("json") === true && text.length <= maxBodyChars;
    return { status, ok, body: json ? JSON.parse(text) : text.slice(0, maxBodyChars).toWellFormed() };
  } catch (error) {
    return { status, ok, note: `the body was not read: ${describeThrown(error)}` };
  }
}
