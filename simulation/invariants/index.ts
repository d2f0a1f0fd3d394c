import type { Evidence } from "../evidence.ts";
import * as cursors from "./cursors.ts";
import * as deeds from "./deeds.ts";
import * as doors from "./doors.ts";
import * as effects from "./effects.ts";
import * as endings from "./endings.ts";
import * as erasure from "./erasure.ts";
import * as forks from "./forks.ts";
import * as guarded from "./guarded.ts";
import * as intents from "./intents.ts";
import * as journal from "./journal.ts";
import * as lanes from "./lanes.ts";
import * as leases from "./leases.ts";
import * as liveness from "./liveness.ts";
import * as quotas from "./quotas.ts";
import * as rewound from "./rewound.ts";
import * as schedules from "./schedules.ts";
import * as signals from "./signals.ts";
import * as singletons from "./singletons.ts";
import * as strangers from "./strangers.ts";
import * as unbegun from "./unbegun.ts";
import * as values from "./values.ts";
import * as wire from "./wire.ts";

const { inboxOf: _inbox, mainJournals: _main, recordsOf: _records, ...journalRules } = journal;
const { remembered, ...rewoundRules } = rewound;

/** Every invariant by its name. */
export const invariants: Readonly<Record<string, journal.Invariant>> = {
  ...journalRules,
  ...lanes,
  ...leases,
  ...effects,
  ...intents,
  ...signals,
  ...endings,
  ...deeds,
  ...forks,
  ...guarded,
  ...unbegun,
  ...strangers,
  ...quotas,
  ...cursors,
  ...erasure,
  ...doors,
  ...liveness,
  ...rewoundRules,
  ...schedules,
  ...singletons,
  ...values,
  ...wire,
};

/** What does not hold, each with the name of its invariant. */
export function brokenInvariants(of: Evidence): string[] {
  const evidence = remembered(of);
  return Object.entries(invariants).flatMap(([name, check]) => check(evidence).map((fault) => `${name}: ${fault}`));
}
