import { encodeBody } from "../../model/projection.ts";
import { childStarted } from "../../model/projection-creation.ts";
import type { RecordContext } from "../../model/record-context.ts";
import type { RecordData } from "../../model/records.ts";
import type { AppendResult } from "../contract/store.ts";
import type { CheckedEntry } from "../validate/entry.ts";
import { joinedTexts, nullableLiteral, numbersLiteral, textsLiteral } from "./arrays.ts";
import {
  type AppendItem,
  type Backlog,
  endWrite,
  fenceFields,
  recordParams,
  type WriteSingle,
} from "./batched-writes.ts";
import type { BatchedWrite } from "./write-batcher.ts";

/** The writes of a run with many children: it starts them, and each of them ends. */

/** `parent` is absent if the hints have been sent already; its backlog is absent if the parent has a holder. */
export type ChildEndResult = AppendResult & { readonly parent?: { readonly backlog?: Backlog } };

type EndedChild = RecordData<"run.ended"> & { readonly parent: NonNullable<RecordData<"run.ended">["parent"]> };

const endedOf = ({ entry }: AppendItem): EndedChild => entry.records[0]!.data as EndedChild;

/** As in projection.ts. */
function noteOf({ parent: { pos, id }, status, outcome }: EndedChild): string {
  const note: RecordData<"child.settled"> = { pos, id, status, outcome };
  return encodeBody(note);
}

/** A child that is decided and ended at once, with nothing open: its parent gets a note. */
export function endChildWrite(
  single: WriteSingle<AppendItem, ChildEndResult>,
): BatchedWrite<AppendItem, ChildEndResult, "end_many.children"> {
  const { params } = endWrite(single);
  return {
    ...fenceFields,
    sql: "end_many.children",
    params: (batch) => ({
      ...params(batch),
      parents: numbersLiteral(batch.map((item) => endedOf(item).parent.journal)),
      notes: joinedTexts(batch.map((item) => noteOf(endedOf(item)))),
    }),
    result: (item, row) => {
      const { tenant, workflow } = row;
      // Of a batch that was found written the holder is not known. A hint too many does no harm.
      const held = "held" in row && row.held === true;
      return {
        ...fenceFields.result(item, row),
        parent: held ? {} : { backlog: { tenant: tenant!, workflow: "held" in row ? workflow : "" } },
      };
    },
    single,
  };
}

export function isChildEnd({ records }: CheckedEntry): boolean {
  const [record] = records;
  if (records.length !== 1 || record?.kind !== "run.ended") return false;
  const { status, outcome, parent } = record.data;
  return status !== "COMPENSATED" && outcome !== undefined && parent !== undefined;
}

interface NewChild {
  readonly journal: number;
  readonly pos: number;
  readonly id: string;
  readonly workflow: string;
  readonly version: string | null;
  readonly inputHash: string;
  readonly maxStallMs: number | null;
  readonly body: string;
}

export interface SpawnItem extends AppendItem {
  readonly children: readonly NewChild[];
}

/** The children that an entry starts, with the numbers of their journals. */
export function spawnItemOf(item: AppendItem, allocate: () => number): SpawnItem {
  const started = item.entry.records.filter((record) => record.kind === "child.started");
  return { ...item, children: started.map(({ data }) => newChild(data, item.fence.journal, allocate())) };
}

/** By the changes of the record, so that both routes write the same rows. */
function newChild(data: RecordData<"child.started">, parent: number, journal: number): NewChild {
  const place = { journal: parent, allocate: () => journal } as RecordContext;
  const [run, lease, first, ...others] = childStarted(data, place);
  if (run?.do !== "run.create" || lease?.do !== "lease.create" || first?.do !== "record.create" || others.length > 0) {
    throw new Error("an entry that starts more than plain children took their route");
  }
  const { id, workflow, version, inputHash } = run;
  return { journal, pos: data.pos, id, workflow, version, inputHash, maxStallMs: lease.maxStallMs, body: first.body };
}

export const startedChildren = ({ records }: CheckedEntry): number =>
  records.filter(({ kind }) => kind === "child.started").length;

/** Plain records, some of which start children without a queue, labels or a build. */
export function spawnWrite(
  single: WriteSingle<SpawnItem, AppendResult>,
): BatchedWrite<SpawnItem, AppendResult, "spawn_many"> {
  return {
    ...fenceFields,
    sql: "spawn_many",
    bytes: ({ entry }) => 2 * entry.bytes, // the input of a child is in two records
    params: (batch) => {
      const children = batch.flatMap(({ fence, children: own }) => own.map((child) => ({ fence, ...child })));
      return {
        ...recordParams(batch),
        children: numbersLiteral(children.map(({ journal }) => journal)),
        parents: numbersLiteral(children.map(({ fence }) => fence.journal)),
        positions: numbersLiteral(children.map(({ pos }) => pos)),
        owners: textsLiteral(children.map(({ fence }) => fence.tenant)),
        ids: textsLiteral(children.map(({ id }) => id)),
        workflows: textsLiteral(children.map(({ workflow }) => workflow)),
        versions: textsLiteral(children.map(({ version }) => version)),
        inputHashes: textsLiteral(children.map(({ inputHash }) => inputHash)),
        stalls: nullableLiteral(children.map(({ maxStallMs }) => maxStallMs ?? undefined)),
        firstBodies: joinedTexts(children.map(({ body }) => body)),
      };
    },
    single,
  };
}
