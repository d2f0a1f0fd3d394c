import type { FeedRecord } from "../../src/store/contract/store.ts";
import type { Evidence } from "../evidence.ts";
import { approver, guardedName } from "../guarded-gate.ts";
import { inboxOf, mainJournals } from "./journal.ts";
import { across, each, exempt, type Invariant, together } from "./judge.ts";

const withdraws: ReadonlySet<string> = new Set(["run.decided", "run.ended"]);
type Resolved = Extract<FeedRecord, { kind: "gate.resolved" }>;

/** Each guarded gate that was answered, with the note that answered it, and the place of its opening in the feed. */
function answers(evidence: Evidence) {
  return mainJournals(evidence).flatMap(({ id, journal, records }) => {
    const inbox = inboxOf(evidence, journal);
    return records.flatMap((opened) => {
      if (opened.kind !== "gate.opened" || opened.data.name !== guardedName) return [];
      const { pos } = opened.data;
      const resolved = records.find((one): one is Resolved => one.kind === "gate.resolved" && one.data.pos === pos);
      const note = inbox.find(({ seq }) => seq === resolved?.data.note);
      // A decision withdraws it without a word of its own.
      const closed = resolved ?? records.find(({ kind, seq }) => withdraws.has(kind) && seq > opened.seq);
      return [{ id, journal, opened, resolved, closed, note }];
    });
  });
}

/** A gate is answered by whom it names, with what was sent while it stood open; others are refused, and leave nothing. */
export const onlyApproversAnswer: Invariant = (evidence) => {
  const places = new Map(evidence.feed.map((record, k) => [record, k]));
  const place = (record: FeedRecord): number => places.get(record) ?? Number.POSITIVE_INFINITY;
  const gates = each(answers(evidence), ({ id, journal, opened, resolved, closed, note }) => {
    const found: string[] = [];
    if (resolved?.data.to === "RECEIVED") {
      if (note?.kind !== "signal.sent" || note.data.by !== approver)
        found.push(`${id}: not ${approver} answered its gate`);
      else if (place(note) < place(opened)) found.push(`${id}: its gate took what was sent before it stood open`);
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
    return [...found, ...intruders.map(({ seq }) => `${id}: note ${seq} was taken in from whom the gate is not for`)];
  });
  const keys = new Set(evidence.feed.flatMap((one) => (one.kind === "signal.sent" ? (one.data.key ?? []) : [])));
  const refused = each(evidence.guarded, ({ run, told, key }) => {
    if (told !== "TAPE_NOT_APPROVER") return exempt;
    return keys.has(key) ? [`${run}: "${key}" was refused, and is in the inbox`] : [];
  });
  return together([gates, refused]);
};

/** What does not fit a gate's schema answers it never, and is refused once; what fits is not refused. */
export const unfitSignalsAreRefused: Invariant = (evidence) =>
  across(mainJournals(evidence), ({ id, journal, records }) => {
    const inbox = new Map(inboxOf(evidence, journal).map((note) => [note.seq, note]));
    const fits = (seq: number | undefined): boolean => {
      const note = inbox.get(seq ?? 0);
      return note?.kind === "signal.sent" && typeof note.data.value === "number";
    };
    const refused = records.flatMap((one) => (one.kind === "signal.refused" ? [one.data.note] : []));
    const own = answers(evidence).filter((one) => one.id === id);
    return together([
      each(refused, (seq, k) => {
        const faults = fits(seq) ? [`${id}: note ${seq} fits, and was refused`] : [];
        return refused.indexOf(seq) === k ? faults : [...faults, `${id}: note ${seq} was refused twice`];
      }),
      each(own, ({ resolved }) => {
        if (resolved?.data.to !== "RECEIVED") return exempt;
        const { note } = resolved.data;
        return fits(note) ? [] : [`${id}: its gate took note ${note}, which does not fit`];
      }),
    ]);
  });
