import type { Plan } from "../../simulation/plan.ts";
import { endless } from "../../simulation/plan-generations.ts";
import { usesObjects } from "../../simulation/plan-objects.ts";
import { scoper } from "../../simulation/plan-scopes.ts";

/** A process is paused for longer than its lease lasts. */
const isLongStop = ({ kind, forMs = 0 }: Plan["faults"][number], ttlMs: number): boolean =>
  kind === "pause" && forMs > ttlMs;

const says = (runs: Plan["runs"], text: string): boolean => JSON.stringify(runs).includes(text);

const count = (runs: Plan["runs"], pattern: RegExp): number => JSON.stringify(runs).match(pattern)?.length ?? 0;

/**
 * Kinds of plans in which a bug can show. The plan that a seed draws decides it; seeds of other kinds are skipped, but
 * counted.
 */
export const kinds = {
  "with a long pause": ({ replicas, faults, ttlMs }) => replicas > 1 && faults.some((one) => isLongStop(one, ttlMs)),
  "with wrong clocks": ({ replicas, clocks }) => replicas > 1 && clocks.some(({ offMs }) => offMs !== 0),
  "with a careless upstream": ({ runs }) => says(runs, '"compensable.careless"') && says(runs, '"twice"'),
  "with shared keys": (plan) => JSON.stringify(plan).includes('"businessKey":"shared"'),
  "with an outbox": ({ runs, faults }) => says(runs, '.outbox"') && faults.length > 0,
  "with several compensations": ({ runs }) => count(runs, /"effect":"(compensable|blind)/g) > 1,
  "with an end in doubt": ({ runs }) => runs.some(({ id }) => id === "ends-in-doubt"),
  "with budgets": ({ runs }) => says(runs, '"op":"spend"'),
  "with children": ({ runs }) => says(runs, '"op":"child"'),
  "with timers": ({ runs }) => says(runs, '"op":"sleep"') || says(runs, '"timeoutMs"'),
  "with lanes": ({ runs }) => says(runs, '"op":"lanes"'),
  "with transactions": ({ callers }) => callers.length > 0,
  "with retried steps": ({ runs }) => says(runs, '"op":"trial"'),
  "with an outage": ({ runs }) => says(runs, '"giveUpAfterMs"'),
  "with models": ({ runs }) => says(runs, '"op":"model"'),
  "with a wedged process": ({ runs }) => says(runs, '"wedgeMs"'),
  "with a streamer": ({ runs }) => says(runs, '"op":"stream"'),
  "with signals": ({ signals }) => signals.length > 0,
  "with values": ({ values }) => values.length > 0,
  "with a schedule": ({ schedules }) => schedules.length > 0,
  "with a rewound store": ({ rewind }) => rewind !== undefined,
  "with operators": ({ actions }) => actions.length > 0,
  "with strangers": ({ strangers }) => strangers.length > 0,
  "with neighbours": ({ neighbours }) => neighbours.actions.length > 0,
  "with a singleton": ({ singleton, replicas }) => singleton !== undefined && replicas > 1,
  "with a guarded gate": ({ guarded }) => guarded.length > 0,
  "with unnamed forks": ({ actions }) => actions.some(({ what }) => what === "fork unnamed"),
  "with an early cancellation": ({ unstarted }) => unstarted !== undefined,
  "with a talker": ({ talk }) => talk !== undefined,
  "with objects": usesObjects,
  "with queues": ({ queues }) => queues.queues.length > 0,
  "without loops": ({ serverless }) => serverless !== undefined,
  "with a sink": ({ sink }) => sink !== undefined,
  "with a sink and several replicas": ({ sink, replicas }) => sink !== undefined && replicas > 1,
  "with a sink and a rewound store": ({ sink, rewind }) => sink !== undefined && rewind !== undefined,
  "with retention": ({ retention }) => retention !== undefined,
  "with shards": ({ shards }) => shards !== undefined,
  "with builds": ({ builds }) => builds !== undefined,
  "with a codec": ({ codec }) => codec,
  "with scopes": ({ runs }) => runs.some(({ id }) => id === scoper),
  "with generations": ({ runs }) => runs.some(({ id }) => id === endless),
  "with a set clock": ({ wallStep }) => wallStep !== undefined,
} satisfies Record<string, (plan: Plan) => boolean>;

export type Kind = keyof typeof kinds;
