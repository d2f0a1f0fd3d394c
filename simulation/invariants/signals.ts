import type { FeedRecord } from "../../src/store/contract/store.ts";
import { inboxOf, mainJournals } from "./journal.ts";
import { across, each, exempt, type Invariant } from "./judge.ts";

/** A gate takes the oldest unused signal of its name, and does not time out while there is one. */
export const signalsAreNotSkipped: Invariant = (evidence) =>
  across(mainJournals(evidence), ({ id, journal, records }) => {
    const inbox = inboxOf(evidence, journal);
    const names = new Map<number, string>();
    const used = new Set<number>();
    const guarded = new Set<number>();
    const callbacks = new Set<number>();
    return each(records, (record) => {
      if (record.kind === "signal.refused") used.add(record.data.note);
      if (record.kind === "gate.opened") names.set(record.data.pos, record.data.name);
      if (record.kind === "gate.opened" && record.data.approvers !== undefined) guarded.add(record.data.pos);
      if (record.kind === "gate.opened" && record.data.callback !== undefined) callbacks.add(record.data.pos);
      if (record.kind !== "gate.resolved") return exempt;
      const { pos, to, note } = record.data;
      const before = to === "RECEIVED" ? note : inbox.find((one) => isTimeout(one, pos))?.seq;
      if (before === undefined) return exempt;
      const skipped = inbox.find(
        (one) =>
          one.kind === "signal.sent" &&
          one.data.name === names.get(pos) &&
          one.data.pos === (callbacks.has(pos) ? pos : undefined) &&
          (!guarded.has(pos) || one.data.approves?.includes(pos) === true) &&
          one.seq < before &&
          !used.has(one.seq),
      );
      if (note !== undefined) used.add(note);
      return skipped === undefined ? [] : [`${id}: the gate at ${pos} skipped signal ${skipped.seq} (${to})`];
    });
  });

const isTimeout = (record: FeedRecord, pos: number): boolean =>
  record.kind === "timer.fired" && record.data.pos === pos && record.data.purpose === "gate_timeout";
