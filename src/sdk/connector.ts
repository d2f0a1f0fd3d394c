import { assertResolvable } from "./effect.ts";
import type { CompensateDefinition, EffectContext, EffectDefinition } from "./effect-types.ts";
import type { Observation } from "./outcomes.ts";

/** The context of a connector's call. It names the effect, because one connector serves many. */
export interface ConnectorContext extends Omit<EffectContext, "stream"> {
  /** The name of the effect. */
  readonly effect: string;
}

/**
 * One way to reach one upstream. Register it with `createRunner`; effects without a body name it. Reactors call it under
 * the effect's own lease. What it throws reports the outcome: `DefiniteFailure`, `NotSent`, or anything else for an
 * unknown outcome.
 */
export interface Connector {
  /** The name that effects use. */
  readonly name: string;
  /** Makes the call. */
  dispatch(args: unknown, fx: ConnectorContext): unknown;
  /** Asks the upstream whether it happened. */
  readonly observe?: ((args: unknown, fx: ConnectorContext) => Observation | Promise<Observation>) | undefined;
  /** Compensates a confirmed effect. */
  readonly compensate?: CompensateDefinition<ConnectorContext> | undefined;
}

/** The effect bound to its connector; undefined if this process does not have the connector. */
export function bindConnector(
  definition: EffectDefinition,
  connectors: ReadonlyMap<string, Connector>,
): EffectDefinition | undefined {
  if (definition.connector === undefined) return definition;
  const connector = connectors.get(definition.connector);
  if (connector === undefined) return undefined;
  const { name: effect } = definition;
  const { observe } = connector;
  const connected: EffectDefinition = {
    ...definition,
    body: (args, fx) => connector.dispatch(args, { ...fx, effect }),
    observe: definition.observe ?? (observe && ((args, fx) => observe(args, { ...fx, effect }))),
    compensate: definition.compensate ?? compensateBy(connector, definition),
  };
  assertResolvable(connected);
  return connected;
}

/** A read has nothing to compensate, even if its connector can compensate. */
function compensateBy(connector: Connector, definition: EffectDefinition): CompensateDefinition | undefined {
  const { compensate } = connector;
  const { name: effect, semantics } = definition;
  if (compensate === undefined || semantics === "read") return undefined;
  const { run, observe } = compensate;
  return {
    semantics: compensate.semantics,
    run: (args, result, fx) => run(args, result, { ...fx, effect }),
    observe: observe && ((args, fx) => observe(args, { ...fx, effect })),
  };
}
