import { fingerprint } from "../base/canonical.ts";
import { decode, encode } from "../base/codec.ts";
import { TapeError } from "../model/errors.ts";
import { currentContext } from "./current.ts";
import type {
  Body,
  CompensateDefinition,
  ConnectorEffectOptions,
  EffectCall,
  EffectDefinition,
  EffectOptions,
} from "./effect-types.ts";
import {
  assertKnownKeys,
  assertName,
  assertOneOf,
  durationOf,
  functionOr,
  numberOf,
  retryOf,
  textOr,
} from "./validate.ts";

export type {
  CompensateDefinition,
  ConnectorEffectOptions,
  EffectCall,
  EffectContext,
  EffectDefinition,
  EffectOptions,
  EffectRetryPolicy,
  RetryPolicy,
  Semantics,
} from "./effect-types.ts";

/** A defined effect. Call it inside a run, or bind its arguments with `with`. */
export interface Effect<A, R> {
  /** Calls the effect in the current run: inline, or through the outbox. */
  (args: A): Promise<R>;
  /** The effect without its types, for `createRunner`. */
  readonly definition: EffectDefinition;
  /** Binds arguments without calling, for `tape.effect`, `tape.attempt` and gates. */
  with(args: A): EffectCall<R>;
}

/**
 * Defines an effect: a call to an upstream.
 *
 * @throws TAPE_BAD_INPUT if the name or an option is not valid.
 * @throws TAPE_UNSAFE_EFFECT if it is `non_idempotent` and can be neither observed nor compensated.
 * @example
 * export const wire = effect("bank.wire", (a: { invoice: string; amount: number }, fx) => bank.wire(a, { idempotencyKey: fx.key }), {
 *   businessKey: (a) => a.invoice,
 *   observe: async (a, fx) => { const w = await bank.find(fx.businessKey); return w ? outcome.confirmed(w) : outcome.absent(); },
 * });
 */
export function effect<A, R>(name: string, body: Body<A, R>, options?: EffectOptions<A, R>): Effect<A, R>;
export function effect<A, R>(name: string, options: ConnectorEffectOptions<A, R>): Effect<A, R>;
export function effect<A, R>(
  name: string,
  bodyOrOptions: Body<A, R> | ConnectorEffectOptions<A, R>,
  more: EffectOptions<A, R> = {},
): Effect<A, R> {
  const body = typeof bodyOrOptions === "function" ? bodyOrOptions : undefined;
  const options = typeof bodyOrOptions === "function" ? more : bodyOrOptions;
  const definition = defineEffect(name, body as Body<unknown, unknown> | undefined, options as Options);
  // Copied as the journal will store them, so that the approved arguments are sent even if the caller's object changes.
  const bind = (given: A): EffectCall<R> => {
    const args = cloneArgs(name, given);
    return { effect: definition, args, hash: fingerprint([name, args]) };
  };
  const call = (args: A): Promise<R> => {
    try {
      return currentContext().effect(bind(args));
    } catch (error) {
      return Promise.reject(error);
    }
  };
  return Object.assign(call, { definition, with: bind });
}

function cloneArgs(name: string, args: unknown): unknown {
  try {
    return decode(encode(args));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TapeError("TAPE_NOT_ENCODABLE", `arguments of ${name}: ${why}`, { effect: name }, error);
  }
}

/** Default attempts. With the default back-off, ten attempts outlast an outage of some minutes at the upstream. */
const defaultAttempts = { non_idempotent: 3, idempotent: 10, read: 5 } as const;
/**
 * An inline call has ended or timed out before it is observed, so absence after the settle delay is proof. What the
 * outbox hands to a connector may be queued there for longer than any default: its author decides.
 */
const defaultAbsentRetries = { inline: 3, outbox: 0 } as const;
const maxAbsentRetries = 100;
const defaultTimeoutMs = 30_000;
const defaultSettleMs = 60_000;

type Options = Omit<EffectOptions<unknown, unknown>, "dispatch"> & {
  readonly dispatch?: "inline" | "outbox";
  readonly connector?: string;
};

const optionKeys: readonly (keyof Options)[] = [
  "semantics",
  "dispatch",
  "connector",
  "businessKey",
  "observe",
  "compensate",
  "retry",
  "timeout",
  "settleDelay",
  "isDefinite",
  "allowUnsafe",
];
const compensateKeys = ["run", "semantics", "observe"];
const allSemantics = ["non_idempotent", "idempotent", "read"] as const;

function defineEffect(name: string, body: Body<unknown, unknown> | undefined, options: Options): EffectDefinition {
  assertName("an effect", name);
  const subject = `effect ${name}`;
  assertKnownKeys(subject, options, optionKeys);
  const { connector, businessKey, observe, isDefinite, allowUnsafe } = options;
  const { semantics = "non_idempotent", dispatch = body === undefined ? "outbox" : "inline" } = options;
  assertOneOf(subject, "semantics", semantics, allSemantics);
  assertOneOf(subject, "dispatch", dispatch, ["inline", "outbox"]);
  functionOr(subject, "businessKey", businessKey);
  functionOr(subject, "observe", observe);
  functionOr(subject, "isDefinite", isDefinite);
  textOr(subject, "allowUnsafe", allowUnsafe);
  if (body !== undefined && connector !== undefined) {
    throw bad(`${name} has a body and a connector: leave one of them out`, name);
  }
  if (body === undefined) {
    if (connector === undefined) throw bad(`${name} needs a body or a connector`, name);
    assertName(`the connector of effect ${name}`, connector);
    if (dispatch !== "outbox")
      throw bad(`${name} uses a connector, which only the outbox calls: leave dispatch out`, name);
  }
  const definition: EffectDefinition = {
    name,
    body,
    connector,
    semantics,
    dispatch,
    businessKey,
    observe,
    compensate: compensateOf(subject, options.compensate),
    ...retryOf(subject, options.retry, defaultAttempts[semantics], ["absent"]),
    absentRetries: numberOf(subject, "retry.absent", options.retry?.absent, defaultAbsentRetries[dispatch], {
      min: 0,
      max: maxAbsentRetries,
    }),
    timeoutMs: durationOf(subject, "timeout", options.timeout, defaultTimeoutMs),
    settleDelayMs: durationOf(subject, "settleDelay", options.settleDelay, defaultSettleMs),
    isDefinite: isDefinite ?? (() => false),
    allowUnsafe,
  };
  // What the connector can do is known where it is registered, so createRunner checks it.
  if (connector === undefined) assertResolvable(definition);
  return definition;
}

/** An effect that may not be sent twice must be observable or compensable. */
export function assertResolvable(definition: EffectDefinition): void {
  const { name, semantics, businessKey, observe, compensate, allowUnsafe } = definition;
  if (semantics !== "non_idempotent" || allowUnsafe) return;
  if ((businessKey !== undefined && observe !== undefined) || compensate !== undefined) return;
  throw new TapeError(
    "TAPE_UNSAFE_EFFECT",
    `${name} cannot be sent twice, and after a lost response it could be neither observed nor compensated`,
    { effect: name },
  );
}

export function compensateOf(
  subject: string,
  compensate: EffectOptions<unknown, unknown>["compensate"],
): CompensateDefinition | undefined {
  if (compensate === undefined) return undefined;
  if (typeof compensate === "function") return { run: compensate, semantics: "non_idempotent", observe: undefined };
  assertKnownKeys(`compensate of ${subject}`, compensate, compensateKeys);
  const { run, semantics = "non_idempotent", observe } = compensate;
  assertOneOf(`compensate of ${subject}`, "semantics", semantics, allSemantics);
  if (typeof run !== "function") throw new TapeError("TAPE_BAD_INPUT", `compensate of ${subject} needs a function`);
  functionOr(`compensate of ${subject}`, "observe", observe);
  return { run, semantics, observe };
}

function bad(message: string, name: unknown): TapeError {
  return new TapeError("TAPE_BAD_INPUT", message, { effect: name });
}
