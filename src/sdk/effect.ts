import { fingerprint } from "../base/canonical.ts";
import { decode, encode } from "../base/codec.ts";
import { type Duration, durationMs } from "../base/duration.ts";
import { TapeError } from "../model/errors.ts";
import type { Act, Body, EffectDefinition, EffectOptions, InverseDefinition } from "./act.ts";
import { currentContext } from "./current.ts";

export type {
  Act,
  EffectContext,
  EffectDefinition,
  EffectOptions,
  InverseDefinition,
  RetryPolicy,
  Semantics,
} from "./act.ts";

/** A defined effect. Call it inside a run, or make an act of it with `with`. */
export interface Effect<A, R> {
  (args: A): Promise<R>;
  readonly definition: EffectDefinition;
  with(args: A): Act<R>;
}

/**
 * Defines an act on the world.
 *
 * @example
 * export const wire = effect("bank.wire", (a: { invoice: string; amount: number }, fx) => bank.wire(a, { idempotencyKey: fx.key }), {
 *   businessKey: (a) => a.invoice,
 *   observe: async (a, fx) => { const w = await bank.find(fx.businessKey); return w ? outcome.confirmed(w) : outcome.absent(); },
 * });
 */
export function effect<A, R>(name: string, body: Body<A, R>, options?: EffectOptions<A, R>): Effect<A, R>;
export function effect<A, R>(name: string, options: EffectOptions<A, R> & { readonly connector: string }): Effect<A, R>;
export function effect<A, R>(
  name: string,
  bodyOrOptions: Body<A, R> | EffectOptions<A, R>,
  more: EffectOptions<A, R> = {},
): Effect<A, R> {
  const body = typeof bodyOrOptions === "function" ? bodyOrOptions : undefined;
  const options = typeof bodyOrOptions === "function" ? more : bodyOrOptions;
  const definition = define(
    name,
    body as Body<unknown, unknown> | undefined,
    options as EffectOptions<unknown, unknown>,
  );
  // Copied, as the journal will hold them: what is approved is what is sent, whatever becomes of the caller's object.
  const act = (given: A): Act<R> => {
    const args = copied(name, given);
    return { effect: definition, args, hash: fingerprint([name, args]) };
  };
  const call = (args: A): Promise<R> => {
    try {
      return currentContext().effect(act(args));
    } catch (error) {
      return Promise.reject(error);
    }
  };
  return Object.assign(call, { definition, with: act });
}

function copied(name: string, args: unknown): unknown {
  try {
    return decode(encode(args));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TapeError("TAPE_NOT_ENCODABLE", `arguments of ${name}: ${why}`, { effect: name }, error);
  }
}

const defaultTimeoutMs = 30_000;
const defaultSettleMs = 60_000;

function define(
  name: string,
  body: Body<unknown, unknown> | undefined,
  options: EffectOptions<unknown, unknown>,
): EffectDefinition {
  if (typeof name !== "string" || name.length === 0) throw bad("an effect needs a name", name);
  const { semantics = "non_idempotent", dispatch = "inline", connector, businessKey, observe, retry = {} } = options;
  if (body === undefined && connector === undefined) throw bad(`${name} needs a body or a connector`, name);
  const inverse = inverseOf(options.compensate);
  if (semantics === "non_idempotent" && connector === undefined) {
    const resolvable = (businessKey !== undefined && observe !== undefined) || inverse !== undefined;
    if (!resolvable && !options.allowUnsafe) {
      throw new TapeError(
        "TAPE_UNSAFE_EFFECT",
        `${name} cannot be sent twice, and nobody could tell or undo it after a lost answer`,
        { effect: name },
      );
    }
  }
  return {
    name,
    body,
    connector,
    semantics,
    dispatch,
    businessKey,
    observe,
    inverse,
    attempts: retry.attempts ?? (semantics === "non_idempotent" ? 3 : 5),
    backoff: {
      baseMs: ms(name, "retry.base", retry.base, 1_000),
      factor: retry.factor ?? 2,
      capMs: ms(name, "retry.cap", retry.cap, 60_000),
    },
    timeoutMs: ms(name, "timeout", options.timeout, defaultTimeoutMs),
    settleMs: ms(name, "settle", options.settle, defaultSettleMs),
    definite: options.definite ?? (() => false),
  };
}

function inverseOf(compensate: EffectOptions<unknown, unknown>["compensate"]): InverseDefinition | undefined {
  if (compensate === undefined) return undefined;
  if (typeof compensate === "function") return { run: compensate, semantics: "non_idempotent", observe: undefined };
  const { run, semantics = "non_idempotent", observe } = compensate;
  return { run, semantics, observe };
}

function ms(effectName: string, what: string, duration: Duration | undefined, otherwise: number): number {
  if (duration === undefined) return otherwise;
  const value = durationMs(duration);
  if (value === undefined) throw bad(`${effectName}: ${what} is not a duration such as "30s"`, effectName);
  return value;
}

function bad(message: string, name: unknown): TapeError {
  return new TapeError("TAPE_BAD_INPUT", message, { effect: name });
}
