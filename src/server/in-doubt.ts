import type { JournalRecord } from "../model/records.ts";
import type { EffectRow } from "../model/rows.ts";
import type { ResponseOf } from "../protocol/contract.ts";
import type { ReadOps } from "../store/contract/store.ts";

type InDoubtDetails = ResponseOf<"inDoubt.list">["inDoubt"][number];

/** An effect in doubt with its observations, evidence and next observation. undefined: its run was deleted. */
export async function inDoubtDetails(
  read: ReadOps,
  tenant: string,
  effect: EffectRow,
): Promise<InDoubtDetails | undefined> {
  const { run: journal, item } = effect;
  const of = item === null ? undefined : { journal: item };
  const [owner, lease, records, notes, runNotes] = await Promise.all([
    read.lease(tenant, { journal }),
    of === undefined ? undefined : read.lease(tenant, of),
    of === undefined ? [] : read.journal(tenant, of),
    of === undefined ? [] : read.journal(tenant, of, { inbox: true }),
    // Evidence of an inline effect that arrived while its run still decided on it.
    effect.dispatch === "inline" ? read.journal(tenant, { journal }, { inbox: true }) : [],
  ]);
  const run = owner?.name == null ? undefined : await read.run(tenant, owner.name);
  if (run === undefined) return undefined;
  const observations = records.flatMap((record) => (record.kind === "effect.observed" ? [observationOf(record)] : []));
  const requests = records.flatMap((record) => (record.kind === "operator.action" ? [requestOf(record)] : []));
  return {
    effect,
    ...{ runId: run.id, workflow: run.workflow, runStatus: run.status, observations: observations.length },
    lastObservation: observations.at(-1) ?? null,
    evidence: evidenceIn([...runNotes, ...notes], effect),
    lastRequest: requests.at(-1) ?? null,
    nextInMs: lease?.nextReactor == null || lease.owner !== null ? null : nextIn(records, await read.now()),
    observer: lease?.label ?? null,
  };
}

type RecordOf<K extends JournalRecord["kind"]> = Extract<JournalRecord, { readonly kind: K }>;

const observationOf = ({ at, data: { observation, detail } }: RecordOf<"effect.observed">) => ({
  at,
  observation,
  detail,
});
const requestOf = ({ at, data: { by, reason, detail } }: RecordOf<"operator.action">) => ({ at, by, reason, detail });

function evidenceIn(notes: readonly JournalRecord[], { pos, sub }: EffectRow): InDoubtDetails["evidence"] {
  return notes.flatMap((note) => {
    if (note.kind !== "effect.evidence" || note.data.pos !== pos || (note.data.sub ?? 0) !== sub) return [];
    const { attempt, happened, value, error } = note.data;
    return [{ at: note.at, attempt, happened, value, error }];
  });
}

/** The last release recorded the delay until the next observation. */
function nextIn(records: readonly JournalRecord[], now: number): number {
  const last = records.findLast((record) => record.kind === "term.ended");
  return last?.kind === "term.ended" ? Math.max(0, last.at + (last.data.delayMs ?? 0) - now) : 0;
}
