import { decode, encode, isSealed } from "../base/codec.ts";
import { isTapeError } from "../model/errors.ts";
import type { LeaseTarget } from "../model/lease.ts";
import { isHashed } from "../model/payloads.ts";
import type { JournalRecord } from "../model/records.ts";
import type { EffectRow, GateRow } from "../model/rows.ts";
import { runErrorOf } from "../model/run-error.ts";
import type { ChunkPage, Page, ReadOps, RunView, StoredValue } from "../store/contract/store.ts";
import { pageOf } from "../store/page.ts";
import { type PayloadCoder, runPlace, valuePlace } from "./payload-coder.ts";
import {
  businessScope,
  openParts,
  openRecord,
  type RecordOwner,
  type Relatives,
  sealedParts,
  sourcesOf,
} from "./records.ts";
import type { RunSubject, RunSubjects } from "./run-subjects.ts";

type Fields = Record<string, unknown>;

/** The reads of a store whose payloads are opened for this process. */
export class SealedReads {
  readonly #coder: PayloadCoder;
  readonly #subjects: RunSubjects;
  readonly #inner: ReadOps;

  constructor(coder: PayloadCoder, subjects: RunSubjects, inner: ReadOps) {
    this.#coder = coder;
    this.#subjects = subjects;
    this.#inner = inner;
  }

  read(): ReadOps {
    const inner = this.#inner;
    return {
      ...inner,
      run: async (tenant, id) => {
        const run = await inner.run(tenant, id);
        return run && this.#ended(tenant, run, run.cause);
      },
      runs: async (tenant, filter) =>
        mapped(await inner.runs(tenant, filter), (run) => this.#ended(tenant, run, run.cause)),
      progress: async (tenant, ids) =>
        mapped(await inner.progress(tenant, ids), (run) => this.#ended(tenant, run, run.status)),
      journal: (tenant, target, page) => this.#journal(tenant, target, page),
      effects: async (tenant, filter) => {
        const rows = await inner.effects(tenant, filter);
        await this.#know(tenant, rows);
        return mapped(rows, (row) => this.#effect(tenant, row));
      },
      gates: async (tenant, filter) => {
        const rows = await inner.gates(tenant, filter);
        await this.#know(tenant, rows);
        return mapped(rows, (row) => this.#gate(tenant, row));
      },
      businessKeyOwner: async (tenant, scope, key) => {
        const found = await inner.businessKeyOwner(tenant, scope, key);
        if (found !== undefined) return found;
        const hash = await this.#coder.hash(key, tenant, businessScope(scope));
        return hash === key ? undefined : inner.businessKeyOwner(tenant, scope, hash);
      },
      ...this.#values(),
      ...this.#talk(),
      feed: async (cursor, limit, tenant) => {
        const page = await inner.feed(cursor, limit, tenant);
        if (tenant === undefined) return page; // for the store's own operators, who have no tenant's key
        await this.#know(
          tenant,
          page.records.map(({ journal }) => ({ run: Math.abs(journal) })),
        );
        return { ...page, records: await Promise.all(page.records.map((one) => this.#record(tenant, one))) };
      },
    };
  }

  #values(): Pick<ReadOps, "value" | "values" | "valueHistory"> {
    const inner = this.#inner;
    const open = async (tenant: string, row: StoredValue): Promise<StoredValue> => {
      const places = [valuePlace(row.key)];
      return { ...row, value: await this.#coder.open(row.value, { tenant, kind: "value", field: "value", places }) };
    };
    return {
      value: async (tenant, key) => {
        const found = await inner.value(tenant, key);
        return found && open(tenant, found);
      },
      values: async (tenant, ...rest) => mapped(await inner.values(tenant, ...rest), (row) => open(tenant, row)),
      valueHistory: async (tenant, ...rest) =>
        mapped(await inner.valueHistory(tenant, ...rest), (row) => open(tenant, row)),
    };
  }

  #talk(): Pick<ReadOps, "published" | "reply" | "chunks"> {
    const inner = this.#inner;
    return {
      published: async (tenant, run, page) =>
        mapped(await inner.published(tenant, run, page), async (row) => ({
          ...row,
          value: await this.#ofRun(tenant, run, "state.published", "value", row.value),
        })),
      reply: async (tenant, run, n) => {
        const reply = await inner.reply(tenant, run, n);
        if (reply === undefined) return undefined;
        const at = { tenant, kind: "signal.refused", field: "reason", places: [runPlace(run)] };
        return {
          ...reply,
          ...("value" in reply && { value: await this.#ofRun(tenant, run, "reply.sent", "value", reply.value) }),
          ...("error" in reply && { error: await this.#ofRun(tenant, run, "reply.sent", "error", reply.error) }),
          ...(reply.refused !== undefined && { refused: await this.#coder.openText(reply.refused, at) }),
        };
      },
      chunks: async (tenant, wanted) => {
        const pages = await inner.chunks(tenant, wanted);
        return Promise.all(pages.map((page, k) => page && this.#chunks(tenant, wanted[k]!.run, page)));
      },
    };
  }

  async #chunks(tenant: string, run: string, page: ChunkPage): Promise<ChunkPage> {
    const chunks = page.chunks.map(async (chunk) =>
      "value" in chunk ? { ...chunk, value: await this.#ofRun(tenant, run, "chunk", "value", chunk.value) } : chunk,
    );
    return { ...page, chunks: await Promise.all(chunks) };
  }

  /** The outcome, opened, and the error in it, which no other process could read. */
  async #ended<R extends Pick<RunView, "id" | "outcome" | "error">>(
    tenant: string,
    run: R,
    end: string | null,
  ): Promise<R> {
    const outcome = await this.#ofRun(tenant, run.id, "run.ended", "outcome", run.outcome);
    const error = runErrorOf(end, outcome);
    return { ...run, outcome, ...(error && { error }) };
  }

  #ofRun(tenant: string, run: string, kind: string, field: string, stored: unknown): Promise<unknown> {
    return this.#coder.open(stored, { tenant, kind, field, places: [runPlace(run)] });
  }

  async #journal(
    tenant: string,
    target: LeaseTarget,
    page: Parameters<ReadOps["journal"]>[2],
  ): Promise<Page<JournalRecord>> {
    const records = await this.#inner.journal(tenant, target, page);
    const opened = await mapped(records, (record) => this.#record(tenant, record));
    return page?.inbox === true ? this.#bound(tenant, opened) : opened;
  }

  async #record<R extends JournalRecord>(tenant: string, record: R): Promise<R> {
    const journal = Math.abs(record.journal); // an inbox has the negative number of its journal
    const owner: RecordOwner = { tenant, journal, run: await this.#subject(tenant, journal) };
    return openRecord(this.#coder, record, owner, this.#relativesOf(tenant, journal));
  }

  #relativesOf(tenant: string, journal: number): Relatives {
    return {
      idOf: async (other) => (await this.#subject(tenant, other))?.id,
      sources: async () => {
        const [first] = await this.#inner.journal(tenant, { journal }, { limit: 1 });
        return first?.kind === "run.created" ? sourcesOf(first.data) : [];
      },
    };
  }

  /** Approvals from senders without the key are bound to the keyed hash, which their gate knows as well. */
  async #bound(tenant: string, notes: Page<JournalRecord>): Promise<Page<JournalRecord>> {
    const isBound = (note: JournalRecord): boolean =>
      note.kind === "signal.sent" && note.data.binds !== undefined && isHashed(note.data.binds);
    const run = notes.some(isBound) ? await this.#subject(tenant, Math.abs(notes[0]!.journal)) : undefined;
    if (run === undefined) return notes;
    const gates = await this.#inner.gates(tenant, { run: run.id });
    const plain = new Map<string, string>();
    for (const { binds, payload } of gates) {
      if (binds === null || payload === null) continue;
      const at = { tenant, kind: "gate.opened", field: "payload", places: [runPlace(run.id)] };
      const { also } = await this.#coder.openBoth(decode(payload), at);
      if (also !== undefined) plain.set(binds, also);
    }
    return mapped(notes, async (note) => {
      if (note.kind !== "signal.sent" || !isBound(note)) return note;
      return { ...note, data: { ...note.data, binds: plain.get(note.data.binds!) ?? note.data.binds! } };
    });
  }

  async #effect(tenant: string, row: EffectRow): Promise<EffectRow> {
    const run = await this.#subject(tenant, row.run);
    if (run === undefined) return row;
    const places = [runPlace(run.id)];
    const open = (field: string) => (stored: unknown) =>
      this.#coder.open(stored, { tenant, kind: "effect.intended", field, places });
    const args = await openedText(row.args, async (stored) => {
      const parts = sealedParts(stored);
      const at = { tenant, kind: "obligation.armed", field: "args", places };
      return parts.length === 0 ? open("args")(stored) : openParts(this.#coder, stored as Fields, parts, at);
    });
    const outcome =
      row.outcome === null
        ? null
        : await openedText(row.outcome, async (stored) => {
            const { value, error } = (stored ?? {}) as { readonly value?: unknown; readonly error?: unknown };
            if (!isSealed(value) && !isSealed(error)) return stored;
            return { ...(stored as object), ...(await fieldsOf({ value, error }, open("outcome"))) };
          });
    return { ...row, args, outcome };
  }

  async #gate(tenant: string, row: GateRow): Promise<GateRow> {
    const run = await this.#subject(tenant, row.run);
    if (run === undefined) return row;
    const places = [runPlace(run.id)];
    let { payload, binds, value } = row;
    if (payload !== null) {
      payload = await openedText(payload, async (stored) => {
        const opened = await this.#coder.openBoth(stored, { tenant, kind: "gate.opened", field: "payload", places });
        binds = opened.also ?? binds;
        return opened.value;
      });
    }
    if (value !== null) {
      const at = { tenant, kind: "gate.resolved", field: "value", places };
      value = await openedText(value, (stored) => this.#coder.open(stored, at));
    }
    return { ...row, payload, binds, value };
  }

  /** A caller who may read lists may not ask what journals are about: then the lease names the run. */
  async #subject(tenant: string, journal: number): Promise<RunSubject | undefined> {
    try {
      return await this.#subjects.of(tenant, journal);
    } catch (error) {
      if (!isTapeError(error, "TAPE_FORBIDDEN")) throw error;
    }
    const lease = await this.#inner.lease(tenant, { journal });
    if (lease === undefined || lease.kind === "name" || lease.kind === "store" || lease.name === null) return undefined;
    return { id: lease.name, workflow: "", labels: {} };
  }

  async #know(tenant: string, rows: readonly { readonly run: number }[]): Promise<void> {
    const journals = rows.map(({ run }) => run);
    await this.#subjects.load(tenant, journals).catch((error: unknown) => {
      if (!isTapeError(error, "TAPE_FORBIDDEN")) throw error;
    });
  }
}

async function fieldsOf(
  fields: Readonly<Record<string, unknown>>,
  open: (stored: unknown) => Promise<unknown>,
): Promise<Record<string, unknown>> {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(await Promise.all(given.map(async ([key, value]) => [key, await open(value)] as const)));
}

/** The text of a payload column, opened. */
async function openedText(text: string, open: (stored: unknown) => Promise<unknown>): Promise<string> {
  return text.includes('"sealed"') ? encode(await open(decode(text))) : text;
}

async function mapped<T, U>(page: Page<T>, map: (row: T) => Promise<U>): Promise<Page<U>> {
  return pageOf(await Promise.all(page.map(map)), page.more === true);
}
