import type { QuotaKind } from "../../model/quota.ts";
import type * as model from "../../model/rows.ts";
import type { ApiToken, IdempotencyKey } from "../contract/store.ts";
import { keyOf, Table, UndoLog } from "./table.ts";

/** snake_case, as the columns of the SQL stores are called: the shared code reads rows of every store alike. */
type Snake<Name extends string> = Name extends `${infer Letter}${infer Rest}`
  ? `${Letter extends Lowercase<Letter> ? Letter : `_${Lowercase<Letter>}`}${Snake<Rest>}`
  : Name;
type Stored<Row> = { readonly [Column in keyof Row & string as Snake<Column>]: Row[Column] };

export type RunRow = Stored<model.RunRow> & { readonly counted: boolean };
export type LeaseRow = Stored<model.LeaseRow>;
export type EffectRow = Stored<model.EffectRow & { readonly attemptNonce: bigint | null }>;
/** `steady`: it counts by the clock that nobody can set. */
export type GateRow = Stored<model.GateRow> & { readonly approvals: string };
export type TimerRow = Stored<model.TimerRow> & { readonly steady: boolean };
export type RecordRow = {
  /** Its position in the feed. */
  readonly id: number;
  /** Negative: the inbox of that journal. */
  readonly journal: number;
  readonly seq: number;
  readonly token: bigint;
  readonly at: number;
  readonly kind: string;
  readonly body: string;
};
export type RepeatRow = Stored<IdempotencyKey> & { readonly answer: string; readonly at: number };
export type ProcessRow = {
  readonly tenant: string;
  readonly owner: string;
  readonly label: string;
  readonly at: number;
  readonly body: string;
};
export type AuditRow = {
  readonly id: number;
  readonly tenant: string;
  readonly n: number;
  readonly at: number;
  readonly journal: number;
  readonly subject: string | null;
  readonly body: string;
  readonly hash: string;
};
export type QuotaRow = Readonly<Record<QuotaKind, number | null>> & {
  readonly tenant: string;
  readonly runs_used: number;
  readonly runs_at: number;
  readonly bytes_used: number;
  readonly metered: number | null;
  readonly metered_at: number;
};
export type MetaRow = {
  readonly store_id: string;
  readonly epoch: number;
  /** Tokens are issued above it. */
  readonly token_floor: bigint;
  readonly next_journal: number;
  readonly last_id: number;
};

/** The tables of src/store/sqlite/migrations, with the groups that the statements look rows up by. */
export class Tables {
  readonly undo = new UndoLog();

  /** As the SQL stores have it in meta; drawn when it is first asked for. */
  cursorKey = (): string => "";

  readonly meta = new Table<MetaRow>(this.undo, () => 1, {});

  readonly runs = new Table(this.undo, (row: RunRow) => row.journal, {
    id: (row) => keyOf(row.tenant, row.id),
    tenant: (row) => row.tenant,
    counted: (row) => (row.counted && row.ended_at === null ? row.tenant : null),
    parent: (row) => row.parent,
    root: (row) => row.root,
  });

  readonly leases = new Table(this.undo, (row: LeaseRow) => row.journal, {
    tenant: (row) => row.tenant,
    queue: (row) => (row.next_reactor === null ? null : keyOf(row.next_reactor, row.tenant, row.workflow)),
    holders: (row) => (row.owner === null || row.kind === "name" ? null : keyOf(row.tenant, row.workflow)),
    /** "held", or not in it. */
    state: (row) => (row.owner === null ? null : "held"),
    items: (row) => (row.kind === "item" ? row.run : null),
  });

  readonly names = new Table(
    this.undo,
    (row: { readonly tenant: string; readonly name: string; readonly journal: number }) => keyOf(row.tenant, row.name),
    { journal: (row) => row.journal },
  );

  readonly records = new Table(this.undo, (row: RecordRow) => keyOf(row.journal, row.seq), {
    journal: (row) => row.journal,
    id: (row) => row.id,
  });

  readonly noteKeys = new Table(
    this.undo,
    (row: { readonly journal: number; readonly key: string; readonly n: number }) => keyOf(row.journal, row.key),
    { journal: (row) => row.journal },
  );

  readonly effects = new Table(this.undo, (row: EffectRow) => keyOf(row.run, row.pos, row.sub), {
    run: (row) => row.run,
    root: (row) => row.root,
    tenant: (row) => row.tenant,
    item: (row) => row.item,
  });

  readonly claims = new Table(
    this.undo,
    (row: Stored<model.BusinessKeyRow>) => keyOf(row.tenant, row.scope, row.business_key),
    { run: (row) => row.run },
  );

  readonly gates = new Table(this.undo, (row: GateRow) => keyOf(row.run, row.pos), {
    run: (row) => row.run,
    tenant: (row) => row.tenant,
  });

  readonly timers = new Table(this.undo, (row: TimerRow) => keyOf(row.run, row.pos, row.purpose), {
    run: (row) => row.run,
    tenant: (row) => row.tenant,
    set: (row) => (row.status === "SET" ? row.tenant : null),
  });

  readonly budgets = new Table(this.undo, (row: Stored<model.BudgetRow>) => keyOf(row.run, row.unit), {
    run: (row) => row.run,
  });

  readonly values = new Table(this.undo, (row: Stored<model.ValueRow>) => keyOf(row.tenant, row.key), {
    tenant: (row) => row.tenant,
  });

  readonly valueLog = new Table(this.undo, (row: Stored<model.ValueRow>) => keyOf(row.tenant, row.key, row.version), {
    key: (row) => keyOf(row.tenant, row.key),
  });

  readonly schedules = new Table(this.undo, (row: Stored<model.ScheduleRow>) => keyOf(row.tenant, row.id), {
    tenant: (row) => row.tenant,
  });

  readonly repeats = new Table(this.undo, (row: RepeatRow) => keyOf(row.tenant, row.key), {});

  readonly tokens = new Table(this.undo, (row: Stored<ApiToken>) => row.id, {});

  readonly processes = new Table(this.undo, (row: ProcessRow) => keyOf(row.tenant, row.owner), {
    tenant: (row) => row.tenant,
  });

  readonly quotas = new Table(this.undo, (row: QuotaRow) => row.tenant, {});

  readonly audit = new Table(this.undo, (row: AuditRow) => row.id, { tenant: (row) => row.tenant });

  readonly auditHeads = new Table(
    this.undo,
    (row: { readonly tenant: string; readonly n: number; readonly hash: string }) => row.tenant,
    {},
  );

  readonly tombstones = new Table(this.undo, (row: Stored<model.TombstoneRow>) => keyOf(row.tenant, row.id), {
    journal: (row) => row.journal,
  });
}
