import { TapeError } from "../model/errors.ts";
import type { Connector, ConnectorContext } from "../sdk/connector.ts";
import type { EffectOptions } from "../sdk/effect.ts";
import { compensateOf } from "../sdk/effect.ts";
import type { Observation } from "../sdk/outcomes.ts";
import { assertKnownKeys, assertName } from "../sdk/validate.ts";

/** The functions of a {@link functionConnector}. */
export interface FunctionConnectorParts<A, R> {
  /** Makes the call. */
  readonly dispatch: (args: A, fx: ConnectorContext) => R | Promise<R>;
  /** Asks the upstream whether a call happened. Default: an operator decides. */
  readonly observe?: (args: A, fx: ConnectorContext) => Observation<R> | Promise<Observation<R>>;
  /** Reverses a call that happened. Default: nothing is reversed. */
  readonly compensate?:
    | ((args: A, result: R, fx: ConnectorContext) => unknown)
    | {
        readonly run: (args: A, result: R, fx: ConnectorContext) => unknown;
        readonly semantics?: "idempotent" | "non_idempotent" | "read";
        readonly observe?: (
          compensated: { args: A; result: R },
          fx: ConnectorContext,
        ) => Observation<unknown> | Promise<Observation<unknown>>;
      };
}

/**
 * A connector made of functions, for an upstream that has its own client library.
 *
 * @example
 * const bank = functionConnector("bank", {
 *   dispatch: (a: { invoice: string; amount: number }, fx) => sdk.wire(a, { idempotencyKey: fx.key, signal: fx.abortSignal }),
 *   observe: async (a) => { const w = await sdk.find(a.invoice); return w ? outcome.confirmed(w) : outcome.absent(); },
 *   compensate: (a, receipt, fx) => sdk.reverse(receipt.id, { idempotencyKey: fx.key }),
 * });
 * const wire = effect<{ invoice: string; amount: number }, Receipt>("bank.wire", { connector: "bank", businessKey: (a) => a.invoice });
 */
export function functionConnector<A, R>(name: string, parts: FunctionConnectorParts<A, R>): Connector {
  assertName("a connector", name);
  const subject = `connector ${name}`;
  assertKnownKeys(subject, parts, ["dispatch", "observe", "compensate"]);
  const { dispatch, observe, compensate } = parts;
  if (typeof dispatch !== "function") throw bad(`${subject}: dispatch is not a function`, "dispatch");
  if (observe !== undefined && typeof observe !== "function")
    throw bad(`${subject}: observe is not a function`, "observe");
  // The journal keeps arguments and results without their types; the effect that names this connector declares them.
  return {
    name,
    dispatch: dispatch as Connector["dispatch"],
    observe: observe as Connector["observe"],
    compensate: compensateOf(
      subject,
      compensate as EffectOptions<unknown, unknown>["compensate"],
    ) as Connector["compensate"],
  };
}

function bad(message: string, field: string): TapeError {
  return new TapeError("TAPE_BAD_INPUT", message, { field });
}
