import type { FeedRecord } from "../../src/store/contract/store.ts";
import type { Evidence } from "../evidence.ts";
import { approver, guardedName } from "../guarded-gate.ts";
import { inboxOf, mainJournals } from "./journal.ts";
import { across, combine, each, exempt, type Invariant } from "./judge.ts";

const withdraws: ReadonlySet<string> = new Set(["run.decided", "run.ended"]);
type GateResolved = Extract<FeedRecord, { kind: "gate.resolved" }>;

/** Each guarded gate with its opening record, its resolution and the note that answered it. */
function guardedGates(evidence: Evidence) {
  return mainJournals(evidence).flatMap(({ id, journal, records }) => {
    const inbox = inboxOf(evidence, journal);
    return records.flatMap((opened) => {
      if (opened.kind !== "gate.opened" || opened.data.name !== guardedName) return [];
      const { pos } = opened.data;
      const resolved = records.find((one): one is GateResolved => one.kind === "gate.resolved" && one.data.pos === pos);
      const note = inbox.find(({ seq }) => seq === resolved?.data.note);
      // A decision closes the gate without a record of its own.
      const closed = resolved ?? records.find(({ kind, seq }) => withdraws.has(kind) && seq > opened.seq);
      return [{ id, journal, opened, resolved, closed, note }];
    });
  });
}

/**
 * Only an approver answers a gate, with a signal sent while the gate was open. Other signals are refused and leave
 * nothing.
 */
export const onlyApproversAnswer: Invariant = (evidence) => {
  const places = new Map(evidence.feed.map((record, k) => [record, k]));
  const place = (record: FeedRecord): number => places.get(record) ?? Number.POSITIVE_INFINITY;
  const gates = each(guardedGates(evidence), ({ id, journal, opened, resolved, closed, note }) => {
    const found: string[] = [];
    if (resolved?.data.to === "RECEIVED") {
      if (note?.kind !== "signal.sent" || note.data.by !== approver)
        found.push(`${id}: its gate was not answered by ${approver}`);
      else if (place(note) < place(opened)) found.push(`${id}: its gate took a signal from before it was opened`);
    }
    const [from, to] = [place(opened), closed === undefined ? Number.POSITIVE_INFINITY : place(closed)];
    const intruders = inboxOf(evidence, journal).filter(
      (one) =>
        one.kind === "signal.sent" &&
        one.data.name === guardedName &&
        one.data.by !== approver &&
        place(one) > from &&
        place(one) < to,
    );
    return [
      ...found,
      ...intruders.map(({ seq }) => `${id}: note ${seq} was accepted from a sender who is not an approver`),
    ];
  });
  const keys = new Set(evidence.feed.flatMap((one) => (one.kind === "signal.sent" ? (one.data.key ?? []) : [])));
  const refused = each(evidence.guarded, ({ run, result, key }) => {
    if (result !== "TAPE_NOT_APPROVER") return exempt;
    return keys.has(key) ? [`${run}: "${key}" was refused, but is in the inbox`] : [];
  });
  return combine([gates, refused]);
};

/** A signal that does not match a gate's schema never answers it and is refused once; a matching one is not refused. */
export const unfitSignalsAreRefused: Invariant = (evidence) =>
  across(mainJournals(evidence), ({ id, journal, records }) => {
    const inbox = new Map(inboxOf(evidence, journal).map((note) => [note.seq, note]));
    const fits = (seq: number | undefined): boolean => {
      const note = inbox.get(seq ?? 0);
      return note?.kind === "signal.sent" && typeof note.data.value === "number";
    };
    const refused = records.flatMap((one) => (one.kind === "signal.refused" ? [one.data.note] : []));
    const own = guardedGates(evidence).filter((one) => one.id === id);
    return combine([
      each(refused, (seq, k) => {
        const faults = fits(seq) ? [`${id}: note ${seq} matches, but was refused`] : [];
        return refused.indexOf(seq) === k ? faults : [...faults, `${id}: note ${seq} was refused twice`];
      }),
      each(own, ({ resolved }) => {
        if (resolved?.data.to !== "RECEIVED") return exempt;
        const { note } = resolved.data;
        return fits(note) ? [] : [`${id}: its gate took note ${note}, which does not match`];
      }),
    ]);
  });
