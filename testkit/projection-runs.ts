import { encode } from "../src/base/codec.ts";
import type { RunView } from "../src/store/contract/store.ts";
import { statusOf } from "../src/store/decode-rows.ts";
import type { RunState } from "./projection-rows.ts";
import type { ProjectionTables } from "./projection-tables.ts";

/** A run as the store shows it, and as its records explain it. */

export function actualRun(view: RunView): unknown[] {
  const { journal, id, workflow, version, status, cause, stuckFrom, inputHash, parent, root, notes } = view;
  const outcome = view.outcome === undefined ? null : encode(view.outcome);
  const labels = Object.entries(view.labels);
  return [
    journal,
    id,
    workflow,
    version,
    status,
    cause,
    stuckFrom,
    inputHash,
    labels,
    outcome,
    parent,
    root,
    notes,
    view.endedAt !== null,
  ];
}

export function expectedRun(run: RunState, tables: ProjectionTables): unknown[] {
  const { journal, id, workflow, version, cause, stuckFrom, inputHash, outcome, parent, root, ended } = run;
  const lease = tables.leases.get(journal);
  const slot = tables.slots.rows.get(journal)?.state;
  const status = statusOf(run.phase, lease?.owner !== null, lease?.nextReactor !== null, slot);
  const labels = Object.entries(JSON.parse(run.labels ?? "{}") as object);
  const expectedOutcome = outcome === undefinedText ? null : outcome; // an outcome of undefined reads as none
  return [
    journal,
    id,
    workflow,
    version,
    status,
    cause,
    stuckFrom,
    inputHash,
    labels,
    expectedOutcome,
    parent,
    root,
    lease?.notes,
    ended,
  ];
}

const undefinedText = encode(undefined);
