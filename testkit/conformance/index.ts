import { append } from "./append.ts";
import { attempts } from "./attempts.ts";
import { backlogs } from "./backlogs.ts";
import { batches } from "./batches.ts";
import { blobs } from "./blobs.ts";
import { budgets } from "./budgets.ts";
import { builds } from "./builds.ts";
import { businessKeys } from "./business-keys.ts";
import { census } from "./census.ts";
import { checkpoints } from "./checkpoints.ts";
import { concurrency } from "./concurrency.ts";
import { detachedRuns } from "./detached.ts";
import { effects } from "./effects.ts";
import { erasure } from "./erasure.ts";
import { evidence } from "./evidence.ts";
import { faults } from "./faults.ts";
import { feed } from "./feed.ts";
import { feedFrontier } from "./feed-frontier.ts";
import { finding } from "./finding.ts";
import { foreign } from "./foreign.ts";
import type { Cases, StoreFixture, TestRunner } from "./frame.ts";
import { generations } from "./generations.ts";
import { hostile } from "./hostile.ts";
import { idempotency, lostResponses } from "./idempotency.ts";
import { labelled } from "./labels.ts";
import { leases } from "./leases.ts";
import { lists } from "./lists.ts";
import { misplaced } from "./misplaced.ts";
import { namedLeases } from "./named-leases.ts";
import { notes } from "./notes.ts";
import { obligations } from "./obligations.ts";
import { pages } from "./pages.ts";
import { phases } from "./phases.ts";
import { processReports } from "./process-reports.ts";
import { projection } from "./projection.ts";
import { queueClients } from "./queue-clients.ts";
import { queueCycles } from "./queue-cycles.ts";
import { queueLimits } from "./queue-limits.ts";
import { queueStarts } from "./queue-starts.ts";
import { queues } from "./queues.ts";
import { quotas } from "./quotas.ts";
import { refusals } from "./refusals.ts";
import { renewals } from "./renewals.ts";
import { retention } from "./retention.ts";
import { runs } from "./runs.ts";
import { schedules } from "./schedules.ts";
import { scopes } from "./scopes.ts";
import { apiTokens, audit } from "./service.ts";
import { sleeps } from "./sleeps.ts";
import { streams } from "./streams.ts";
import { takeover } from "./takeover.ts";
import { asks, callbacks, published, startSignals } from "./talking.ts";
import { tenantIsolation } from "./tenant-isolation.ts";
import { termHistory } from "./term-history.ts";
import { tokens } from "./tokens.ts";
import { transactions } from "./transactions.ts";
import { trees } from "./trees.ts";
import { values } from "./values.ts";
import { views } from "./views.ts";
import { gates, timers } from "./waits.ts";

export type { CallerConnection, CallerFixture, StoreFixture, TestRunner } from "./frame.ts";

const groups: Readonly<Record<string, Cases>> = {
  append,
  leases,
  renewals,
  checkpoints,
  takeover,
  finding,
  backlogs,
  queues,
  queueLimits,
  queueStarts,
  queueClients,
  queueCycles,
  builds,
  batches,
  sleeps,
  termHistory,
  namedLeases,
  census,
  tokens,
  concurrency,
  faults,
  runs,
  lists,
  views,
  labelled,
  pages,
  phases,
  generations,
  trees,
  detachedRuns,
  retention,
  erasure,
  scopes,
  notes,
  effects,
  evidence,
  businessKeys,
  obligations,
  gates,
  timers,
  published,
  streams,
  blobs,
  asks,
  startSignals,
  callbacks,
  attempts,
  schedules,
  values,
  budgets,
  hostile,
  misplaced,
  refusals,
  quotas,
  tenantIsolation,
  foreign,
  feed,
  feedFrontier,
  idempotency,
  lostResponses,
  transactions,
  apiTokens,
  audit,
  processReports,
  projection,
};

/**
 * The conformance suite: a store is correct when it passes. A new store needs about ten lines.
 *
 * @example
 * storeConformance("mine", { describe, it, beforeEach, afterEach }, async () => {
 *   const store = await openMine();
 *   return { store, another: async () => openMine(), elapse: (ms) => sleep(ms), close: () => store.close() };
 * });
 */
export function storeConformance(name: string, api: TestRunner, open: () => Promise<StoreFixture>): void {
  api.describe(`store conformance: ${name}`, () => {
    let fixture: StoreFixture | undefined;
    api.beforeEach(async () => {
      fixture = await open();
    });
    api.afterEach(async () => {
      await fixture?.close();
      fixture = undefined;
    });
    for (const [group, cases] of Object.entries(groups)) {
      api.describe(group, () =>
        cases(api, () => {
          if (fixture === undefined) throw new Error("no fixture outside a case");
          return fixture;
        }),
      );
    }
  });
}
