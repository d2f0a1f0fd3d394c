import { fingerprint } from "../base/canonical.ts";
import { hash } from "../base/late-builtins.ts";
import { describeThrown } from "../base/thrown.ts";
import { isTapeError } from "../model/errors.ts";
import type { EffectResult, TapeContext } from "../sdk/context.ts";
import { current } from "../sdk/current.ts";
import type { Effect } from "../sdk/effect.ts";
import type { EffectContext } from "../sdk/effect-types.ts";
import { noStreams } from "../sdk/stream.ts";
import { awaitApproval } from "./approval.ts";
import { halt, isControl, wordsOf } from "./control.ts";
import { perSite, siteOf } from "./site.ts";
import {
  type AnyToolPolicy,
  type CheckedPolicy,
  checkedPolicy,
  effectOf,
  plainRun,
  type ToolArgs,
  type ToolBody,
  thrownKey,
} from "./tool-policy.ts";

/** How a call of a tool ended, for the model. `words`: what it reads instead of a result. */
export type ToolOutcome =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false;
      readonly status: "failed" | "denied" | "not approved" | "unknown" | "already requested";
      readonly words: string;
      /** Of a failed effect: what its body threw. */
      readonly error?: unknown;
    };

/** One call that the model requests. */
export interface ToolRequest extends ToolArgs {
  /** Kept for the tool's code in this process: what the framework passes and no journal can hold. */
  readonly beside?: unknown;
  /** For `approve: "framework"`: whether the framework wants an approval. A function is asked once, and its answer recorded. */
  readonly approve?: boolean | (() => boolean | Promise<boolean>) | undefined;
  readonly why?: string | undefined;
}

/** A tool as effect: `call` in a workflow, `effect` for the runner. */
export interface DurableTool {
  readonly name: string;
  readonly policy: CheckedPolicy;
  /** Register it. undefined: a local tool. */
  readonly effect: Effect<ToolArgs, unknown> | undefined;
  call(request: ToolRequest): Promise<ToolOutcome>;
}

/**
 * Makes a tool durable. `group` and `name` name its effect.
 *
 * @example
 * const pay = durableTool("treasury", "pay", (input, { fx }) => bank.pay(input, fx.key), { businessKey: (a) => a.invoice, observe });
 * const outcome = await pay.call({ call: "call-7", input: { invoice: "117" } });
 */
export function durableTool(
  group: string,
  name: string,
  body: ToolBody,
  policy?: AnyToolPolicy,
  { strict = false }: { readonly strict?: boolean } = {},
): DurableTool {
  const effectName = `${group}.${name}`;
  const checked = checkedPolicy(`tool ${effectName}`, policy, strict);
  const beside = new Map<string, unknown>();
  const besideKey = (run: string, call: string): string => `${run} ${call}`;
  const run = ({ call, input }: ToolArgs, fx: EffectContext): Promise<unknown> =>
    plainRun(checked.unknown, () =>
      body(input as never, { call, abortSignal: fx.abortSignal, fx, beside: beside.get(besideKey(fx.runId, call)) }),
    );
  const bound = effectOf(effectName, run, checked);
  const call = async (request: ToolRequest): Promise<ToolOutcome> => {
    const tape = current();
    const site = siteOf(tape);
    const key = besideKey(tape.runId, request.call);
    beside.set(key, request.beside);
    try {
      return await inLane(tape, site, `${effectName} ${request.call}`, () =>
        new OpenToolCall(tape, effectName, bound, checked, body, request).outcome(),
      );
    } catch (error) {
      if (isControl(error)) halt(site, error);
      throw error;
    } finally {
      beside.delete(key);
    }
  };
  return { name, policy: checked, effect: checked.given.local === true ? undefined : bound, call };
}

/** Ids of providers are short; a longer one would not fit into the path of nested lanes. */
const maxLaneChars = 80;

/** Each call has its lane, because frameworks call tools concurrently. A repeated id gets a number. */
async function inLane<T>(tape: TapeContext, site: object, name: string, work: () => Promise<T>): Promise<T> {
  const short = name.length <= maxLaneChars ? name : `${name.slice(0, 40)} ${hash("sha256", name, "hex").slice(0, 32)}`;
  const busy = busyLanes(site);
  let lane = short;
  for (let k = 2; busy.has(lane); k++) lane = `${short} ${k}`;
  busy.add(lane);
  try {
    return await tape.lane(lane, work);
  } finally {
    busy.delete(lane);
  }
}

const busyLanes = perSite(() => new Set<string>());

/** What calls with a business key came to in this run. Replay fills it again. */
interface KeyedCall {
  readonly result: Promise<EffectResult<unknown>>;
  settled: boolean;
}
const keyedCalls = perSite(() => new Map<string, KeyedCall>());

/** One call of a tool in one drive. */
class OpenToolCall {
  readonly #tape: TapeContext;
  readonly #name: string;
  readonly #effect: Effect<ToolArgs, unknown>;
  readonly #policy: CheckedPolicy;
  readonly #body: ToolBody;
  readonly #request: ToolRequest;

  constructor(
    tape: TapeContext,
    name: string,
    effect: Effect<ToolArgs, unknown>,
    policy: CheckedPolicy,
    body: ToolBody,
    request: ToolRequest,
  ) {
    this.#tape = tape;
    this.#name = name;
    this.#effect = effect;
    this.#policy = policy;
    this.#body = body;
    this.#request = request;
  }

  async outcome(): Promise<ToolOutcome> {
    const { call, input } = this.#request;
    const bound = this.#effect.with({ call, input });
    const { given } = this.#policy;
    if (await this.#needsApproval()) {
      const { why } = this.#request;
      const payload = { tool: this.#name, input, call, ...(why !== undefined && { why }) };
      const approval = await awaitApproval(this.#tape, bound, payload, given);
      if (approval === undefined) return notApproved;
      if (!approval.approved) return denied(approval.reason);
    }
    if (given.local === true) return await this.#local();
    return this.#policy.given.onUnknown === "report" ? await this.#reporting() : await this.#acting();
  }

  /** Sampled: the author's function may depend on something that changes. */
  async #needsApproval(): Promise<boolean> {
    const { input } = this.#request;
    const { approve } = this.#policy.given;
    const rule = approve === "framework" ? this.#request.approve : approve;
    if (typeof rule !== "function") return rule === true;
    return (await this.#tape.sample("needs approval", () => rule(input))) === true;
  }

  async #local(): Promise<ToolOutcome> {
    const { call, input, beside } = this.#request;
    const { abortSignal } = this.#tape;
    try {
      return { ok: true, value: await this.#body(input as never, { call, abortSignal, fx: undefined, beside }) };
    } catch (error) {
      if (isControl(error)) throw error;
      return failed(wordsOf(error));
    }
  }

  async #acting(): Promise<ToolOutcome> {
    try {
      return outcomeOf(await this.#attempt());
    } catch (error) {
      if (isTapeError(error, "TAPE_BUSINESS_KEY_TAKEN")) return await this.#earlier(error.message);
      if (isControl(error)) throw error;
      return failed(wordsOf(error));
    }
  }

  /** Starts the effect, and remembers it under its business key. */
  #attempt(): Promise<EffectResult<unknown>> {
    const { call, input } = this.#request;
    const result = this.#tape.attempt(this.#effect.with({ call, input }));
    const key = this.#key();
    const calls = this.#calls();
    if (key === undefined || calls.has(key)) return result;
    const entry: KeyedCall = { result, settled: false };
    calls.set(key, entry);
    const settle = (): void => {
      entry.settled = true;
    };
    result.then(settle, settle);
    return result;
  }

  /** Without a business key, a call that is reported as unknown is recognised by its input. */
  #key(): string | undefined {
    const { businessKey, onUnknown } = this.#policy.given;
    const { input } = this.#request;
    if (businessKey !== undefined) return `${this.#name} ${businessKey(input)}`;
    return onUnknown === "report" ? `${this.#name} ${fingerprint(input)}` : undefined;
  }

  #calls(): Map<string, KeyedCall> {
    return keyedCalls(this.#tape);
  }

  /** The key is taken: the model reads what the first call with it came to. */
  async #earlier(why: string): Promise<ToolOutcome> {
    const first = this.#calls().get(this.#key() ?? "");
    if (first !== undefined) {
      const result = await first.result.catch(() => undefined);
      if (result !== undefined) return outcomeOf(result);
    }
    const { observe, businessKey } = this.#policy.given;
    const { input } = this.#request;
    if (observe === undefined || businessKey === undefined)
      return { ok: false, status: "already requested", words: why };
    const tape = this.#tape;
    const found = await tape.step(`${this.#name} came to`, async ({ abortSignal, attempt }) => {
      const key = businessKey(input);
      const stream = (): never => {
        throw noStreams("an observation");
      };
      const { runId, fence } = tape;
      return await observe(input, {
        runId,
        key,
        token: fence.token,
        fence,
        attempt,
        abortSignal,
        businessKey: key,
        stream,
      });
    });
    return found.observed === "confirmed" || found.observed === "duplicate"
      ? { ok: true, value: found.value }
      : { ok: false, status: "already requested", words: why };
  }

  /** The effect stays in doubt and is reconciled beside the conversation. */
  async #reporting(): Promise<ToolOutcome> {
    const first = this.#calls().get(this.#key() ?? "");
    if (first !== undefined && !first.settled) return unknownStill;
    const tape = this.#tape;
    const acting = this.#acting();
    const reported = async (): Promise<ToolOutcome> => {
      await tape.sleep(this.#policy.reportAfterMs);
      return unknownYet;
    };
    return await tape.race([acting, () => reported()]);
  }
}

function outcomeOf(result: EffectResult<unknown>): ToolOutcome {
  if (result.status === "failed") {
    const cause = result.error === undefined ? result.reason : describeThrown(result.error);
    return failed(`it did not happen (${result.reason}): ${cause}`, result.error);
  }
  const { value } = result;
  const thrown =
    typeof value === "object" && value !== null ? (value as Record<string, unknown>)[thrownKey] : undefined;
  return typeof thrown === "string" ? failed(thrown) : { ok: true, value };
}

const failed = (words: string, error?: unknown): ToolOutcome => ({
  ...{ ok: false, status: "failed", words },
  ...(error !== undefined && { error }),
});

const denied = (reason: string | undefined): ToolOutcome => ({
  ok: false,
  status: "denied",
  words: reason === undefined ? "the call was denied" : `the call was denied: ${reason}`,
});

const notApproved: ToolOutcome = {
  ok: false,
  status: "not approved",
  words: "the call was not approved in time, so nothing was done",
};

const unknownYet: ToolOutcome = {
  ok: false,
  status: "unknown",
  words: "it is unknown whether this happened. It is being checked. Do not request it again",
};

const unknownStill: ToolOutcome = {
  ok: false,
  status: "unknown",
  words: "an earlier call for the same thing has an unknown outcome, so this one is refused until that is settled",
};
