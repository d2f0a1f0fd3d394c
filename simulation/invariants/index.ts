import type { Evidence } from "../evidence.ts";
import * as alarms from "./alarms.ts";
import * as audit from "./audit.ts";
import * as bookings from "./bookings.ts";
import * as builds from "./builds.ts";
import * as cursors from "./cursors.ts";
import * as effects from "./effects.ts";
import * as endings from "./endings.ts";
import * as erasure from "./erasure.ts";
import * as forks from "./forks.ts";
import * as generations from "./generations.ts";
import * as guarded from "./guarded.ts";
import * as intents from "./intents.ts";
import * as journal from "./journal.ts";
import type { Invariant } from "./judge.ts";
import * as labels from "./labels.ts";
import * as lanes from "./lanes.ts";
import * as leases from "./leases.ts";
import * as liveness from "./liveness.ts";
import * as models from "./models.ts";
import * as objects from "./objects.ts";
import * as queues from "./queues.ts";
import * as quotas from "./quotas.ts";
import * as requestFences from "./request-fences.ts";
import * as retention from "./retention.ts";
import * as rewound from "./rewound.ts";
import * as schedules from "./schedules.ts";
import * as scopes from "./scopes.ts";
import * as sealed from "./sealed.ts";
import * as shards from "./shards.ts";
import * as signals from "./signals.ts";
import * as singletons from "./singletons.ts";
import * as sinks from "./sinks.ts";
import * as strangers from "./strangers.ts";
import * as streams from "./streams.ts";
import * as talk from "./talk.ts";
import * as trials from "./trials.ts";
import * as unstarted from "./unstarted.ts";
import * as values from "./values.ts";
import * as wire from "./wire.ts";

const {
  inboxOf: _inbox,
  mainJournals: _main,
  recordsOf: _records,
  isStuckByStalls: _stuck,
  isStuckByOutage: _outage,
  ...journalRules
} = journal;
const { remembered, ...rewoundRules } = rewound;
const { batchesOf: _batches, ...queueRules } = queues;
const { rosterRuns: _handlers, ...objectRules } = objects;
const { sagaOf: _saga, replayedElsewhere: _replayed, ...scopeRules } = scopes;

/** Every invariant by its name. */
export const invariants: Readonly<Record<string, Invariant>> = {
  ...journalRules,
  ...labels,
  ...lanes,
  ...trials,
  ...leases,
  ...effects,
  ...intents,
  ...signals,
  ...endings,
  ...alarms,
  ...audit,
  ...forks,
  ...generations,
  ...guarded,
  ...bookings,
  ...unstarted,
  ...strangers,
  ...talk,
  ...streams,
  ...models,
  ...sealed,
  ...quotas,
  ...cursors,
  ...erasure,
  ...requestFences,
  ...liveness,
  ...retention,
  ...rewoundRules,
  ...schedules,
  ...queueRules,
  ...objectRules,
  ...scopeRules,
  ...singletons,
  ...shards,
  ...builds,
  ...sinks,
  ...values,
  ...wire,
};

/** The results of all invariants for one simulation. */
export interface InvariantReport {
  /** Each violation, prefixed with the name of its invariant. */
  readonly broken: readonly string[];
  /** How many objects each invariant applied to. */
  readonly judged: Readonly<Record<string, number>>;
}

export function judge(of: Evidence): InvariantReport {
  const evidence = remembered(of);
  const broken: string[] = [];
  const judged: Record<string, number> = {};
  for (const [name, check] of Object.entries(invariants)) {
    const found = check(evidence);
    judged[name] = found.judged;
    broken.push(...found.faults.map((fault) => `${name}: ${fault}`));
  }
  return { broken, judged };
}

export const brokenInvariants = (evidence: Evidence): readonly string[] => judge(evidence).broken;
