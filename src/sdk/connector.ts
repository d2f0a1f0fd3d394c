import { assertResolvable } from "./effect.ts";
import type { CompensateDefinition, EffectContext, EffectDefinition } from "./effect-types.ts";
import type { Observation } from "./outcomes.ts";

/** What a connector is told about the act: one connector serves many effects. */
export interface ConnectorContext extends EffectContext {
  /** The name of the effect. */
  readonly effect: string;
}

/**
 * The way to one part of the outside world. It is registered with `createRunner`, and effects without a body name it. It
 * is called by reactors, under the effect's own lease; what it throws says how sure it is: `Definite`, `NotSent`, or
 * anything else for doubt.
 */
export interface Connector {
  readonly name: string;
  /** Carries the act out. */
  dispatch(args: unknown, fx: ConnectorContext): unknown;
  /** Looks whether it happened. */
  readonly observe?: ((args: unknown, fx: ConnectorContext) => Observation | Promise<Observation>) | undefined;
  /** Undoes what has been confirmed. */
  readonly compensate?: CompensateDefinition<ConnectorContext> | undefined;
}

/** The effect as it can be carried out here; undefined: its connector is not here. */
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

/** A read leaves nothing to undo, whatever else its connector can do. */
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
