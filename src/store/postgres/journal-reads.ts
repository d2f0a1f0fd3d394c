import { Batcher, Channels } from "../../base/batcher.ts";
import type { Clock } from "../../base/clock.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { JournalRecord } from "../../model/records.ts";
import type { Page } from "../contract/store.ts";
import { recordOf } from "../decode-rows.ts";
import type { Plan } from "../sql/plan.ts";
import { journalPlan } from "../sql/plans/reads.ts";
import { numbersLiteral, textsLiteral } from "./arrays.ts";
import type { Connections } from "./connections.ts";

/** A journal, read from its first record. */
export interface JournalRead {
  readonly tenant: string;
  readonly journal: number;
}

export type JournalReads = Batcher<JournalRead, Page<JournalRecord>>;

export interface JournalReadsOptions {
  readonly connections: Connections;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly read: <T>(plan: Plan<T>, tenant: string) => Promise<T>;
}

/** Longer journals are read alone. */
const maxRecords = 8;
/** Fewer journals are cheaper alone: their statement is simpler. */
const minTogether = 4;
const batch = { maxItems: 256, maxBytes: 256, minShare: 64 };

/**
 * Journals that are read at once, which happens after a claim of many runs, in one statement: most runs that wait for
 * their first term have one or two records, and a round trip for each costs more than all of them together.
 */
export function journalReads({ connections, clock, limits, read }: JournalReadsOptions): JournalReads {
  return new Batcher({
    clock,
    pending: limits,
    batch,
    channels: new Channels(2),
    tenant: ({ tenant }) => tenant,
    // A batch names a journal once, so its rows belong to the tenant of that item.
    key: ({ journal }) => journal,
    bytes: () => 1,
    single: ({ tenant, journal }) => read(journalPlan(tenant, { journal }, {}, limits), tenant),
    refusal: (reason, waiting) =>
      reason === "closed"
        ? new TapeError("TAPE_STORE_CLOSED", "this store handle is closed")
        : new TapeError("TAPE_OVERLOADED", `${waiting} reads are waiting`),
    together: async (items) => {
      if (items.length < minTogether) return items.map(() => undefined);
      const found = await readTogether(connections, items);
      return items.map(({ journal }) => {
        const records = found.get(journal);
        return records === undefined || records.length > maxRecords ? undefined : records;
      });
    },
  });
}

async function readTogether(
  connections: Connections,
  items: readonly JournalRead[],
): Promise<ReadonlyMap<number, JournalRecord[]>> {
  const found = new Map<number, JournalRecord[]>();
  const params = {
    journals: numbersLiteral(items.map(({ journal }) => journal)),
    tenants: textsLiteral(items.map(({ tenant }) => tenant)),
  };
  // Whatever goes wrong here is reported by the read of each alone.
  const { rows } = await connections.ask("journals.short", params).catch(() => ({ rows: [] }));
  for (const row of rows) {
    const journal = Number(row.journal);
    const records = found.get(journal) ?? [];
    found.set(journal, records);
    records.push(recordOf(row));
  }
  return found;
}
