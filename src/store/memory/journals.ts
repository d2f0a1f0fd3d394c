import type { Row } from "../sql/plan.ts";
import { changed, type Do, none, row, rows, type Statements } from "./statement.ts";
import { keyOf } from "./table.ts";
import type { MetaRow, RecordRow, Tables } from "./tables.ts";

type NewRecord = Pick<RecordRow, "journal" | "seq" | "token" | "kind" | "body">;

/** The store's own journal. */
export const storeJournal = 1;
const termKinds: readonly string[] = ["run.created", "term.started", "term.ended", "run.ended"];

export const journals = {
  "record.append": (t, p: NewRecord, { at }) => write(t, p, at),
  "record.create": (t, p: Do<"record.create">, { at }) => write(t, p, at),
  "store.record"(t, p: { kind: string; body: string }, { at }) {
    return write(t, { ...p, journal: storeJournal, seq: headOf(t, storeJournal) + 1, token: 0n }, at);
  },

  "journal.head": (t, p: { journal: number }) => row({ head: headOf(t, p.journal) }),

  "journal.page"(t, p: { journal: number; from: number; limit: number; tenant: string | null }) {
    const found: Row[] = [];
    if (p.tenant !== null && t.leases.get(Math.abs(p.journal))?.tenant !== p.tenant) return rows(found);
    // A journal is gapless: the first seq without a record is its end.
    for (let seq = Math.max(1, Math.ceil(p.from)); found.length < p.limit; seq++) {
      const record = t.records.get(keyOf(p.journal, seq));
      if (record === undefined) break;
      found.push(shown(record));
    }
    return rows(found);
  },

  "journal.terms"(t, p: { journal: number }) {
    const found = t.records.by.journal(p.journal).filter(({ kind }) => termKinds.includes(kind));
    return rows(found.toSorted((a, b) => a.seq - b.seq).map(shown));
  },

  "feed.key": (t, _p: object) => row({ key: t.cursorKey() }),

  "feed.edge": (t, _p: object) => row({ id: metaOf(t).last_id }),

  "feed.page"(t, p: { after: number; edge: number; tenant: string | null; limit: number }) {
    const found: Row[] = [];
    for (let id = p.after + 1; id <= p.edge && found.length < p.limit; id++) {
      const [record] = t.records.by.id(id);
      if (record === undefined) continue; // pruned
      const tenant = t.leases.get(Math.abs(record.journal))?.tenant;
      if (p.tenant === null || tenant === p.tenant) found.push(shown(record));
    }
    return rows(found);
  },

  "feed.tenants"(t, p: { after: number; edge: number }) {
    const spans = new Map<string, { tenant: string; first: number; last: number }>();
    for (let id = p.after + 1; id <= p.edge; id++) {
      const [record] = t.records.by.id(id);
      const tenant = record && t.leases.get(Math.abs(record.journal))?.tenant;
      if (tenant !== undefined) spans.set(tenant, { tenant, first: spans.get(tenant)?.first ?? id, last: id });
    }
    return rows([...spans.values()]);
  },

  "note.count"(t, p: { journal: number; tenant: string }, { now }) {
    const lease = t.leases.get(p.journal);
    if (lease?.tenant !== p.tenant || !lease.open) return none;
    const free = lease.owner === null && !lease.doomed;
    const wanted = lease.kind === "run" ? "recovery" : "reconciler";
    const waits = lease.kind !== "run" && lease.next_reactor !== null; // an item goes on waiting for the reactor it waits for
    const woken = waits ? {} : { next_reactor: wanted, due_at: now };
    const counted = t.leases.update(lease, { notes: lease.notes + 1, ...(free ? woken : {}) });
    const { notes, kind, tenant, owner, next_reactor } = counted;
    return row({ notes, kind, tenant, wakes: owner === null ? next_reactor : null });
  },

  "note.create": (t, p: Omit<NewRecord, "token">, { at }) => write(t, { ...p, journal: -p.journal, token: 0n }, at),
  "note.find": (t, p: { journal: number; key: string }) => row(t.noteKeys.get(keyOf(p.journal, p.key))),
  "note.key"(t, p: { journal: number; key: string; n: number }) {
    const { journal, key, n } = p;
    const known = t.noteKeys.get(keyOf(journal, key));
    if (known === undefined) t.noteKeys.insert({ journal, key, n });
    else if (known.n === 0) t.noteKeys.update(known, { n });
    else return none;
    return changed(1);
  },

  "journals.block"(t, p: { size: number }) {
    const meta = metaOf(t);
    t.meta.update(meta, { next_journal: meta.next_journal + p.size });
    return row({ first: meta.next_journal });
  },

  "meta.get"(t, _p: object, { at }) {
    const { store_id, epoch, token_floor } = metaOf(t);
    return row({ store_id, epoch, token_floor: String(token_floor), at });
  },

  "meta.restored"(t) {
    const meta = metaOf(t);
    const epoch = meta.epoch + 1;
    t.meta.update(meta, { epoch, token_floor: BigInt(epoch) << 40n });
    return row({ epoch });
  },
} satisfies Statements;

export function headOf(t: Tables, journal: number): number {
  return t.records.by.journal(journal).reduce((head, { seq }) => Math.max(head, seq), 0);
}

function metaOf(t: Tables): MetaRow {
  return t.meta.get(1)!;
}

/** The only place where a record comes to be; its id is its position in the feed. */
function write(t: Tables, record: NewRecord, at: number): ReturnType<typeof changed> {
  const meta = metaOf(t);
  const { last_id: id } = t.meta.update(meta, { last_id: meta.last_id + 1 });
  const { journal, seq, token, kind, body } = record;
  t.records.insert({ id, journal, seq, token, at, kind, body });
  return changed(1);
}

export function shown(record: RecordRow): Row {
  return { ...record, token: String(record.token) };
}
