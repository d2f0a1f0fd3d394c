import { encode } from "../base/codec.ts";
import { forkAction } from "../engine/drive/kept-records.ts";
import { type OperatorResolution, operatorResolution } from "../engine/item/operator-resolution.ts";
import { starterOf } from "../model/approvers.ts";
import { TapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";
import type { JournalRecord, NewRecord, RecordData } from "../model/records.ts";
import { mayDo } from "../protocol/route.ts";
import type { AppendRequest, ReadOps, RunSpec } from "../store/contract/store.ts";
import { journalPages } from "../store/read-all.ts";
import { actorOf, type Call } from "./handler-types.ts";

type Item = readonly [Fence, AppendRequest];
/** Operators' words that were looked up for this call, by the item's journal. */
type Heard = Map<number, OperatorResolution>;
type Settled = RecordData<"effect.settled"> | RecordData<"obligation.settled">;

/** So many records are looked at together on the way back from a journal's end. */
const backRows = 100;

/**
 * Whose word a record is. A worker writes what its code did; an operator's word comes from a credential that may act as
 * an operator, under that credential's name. A worker may pass on what an operator has said, and only that: the
 * settlement of an effect that an operator resolved, the end of a stuck run's wait for such a resolution, and the note in
 * a fork's journal of who asked for it.
 */
export class Authority {
  readonly #read: ReadOps;

  constructor(read: ReadOps) {
    this.#read = read;
  }

  /** Each item as it may be written, or why it may not. */
  async judged(who: Call, batch: readonly Item[]): Promise<(Item | TapeError)[]> {
    const judged: (Item | TapeError)[] = [];
    const heard: Heard = new Map();
    for (const item of batch) judged.push(item[1].records.some(isWord) ? await this.#judge(who, item, heard) : item);
    return judged;
  }

  /** A fork repeats what has happened: only an operator may ask for one, and the server says who it was. */
  specs(who: Call, specs: readonly RunSpec[]): readonly RunSpec[] {
    return specs.map((given) => {
      const spec = started(who, given);
      if (spec.fork === undefined) return spec;
      if (!mayDo(who.role, "operator")) throw forbidden("to fork a run");
      return { ...spec, fork: { ...spec.fork, by: actorOf(who, spec.fork.by), via: who.via } };
    });
  }

  async #judge(who: Call, [fence, entry]: Item, heard: Heard): Promise<Item | TapeError> {
    if (mayDo(who.role, "operator")) {
      return [fence, { ...entry, records: entry.records.map((record) => signed(who, record)) }];
    }
    const { tenant } = who;
    for (const record of entry.records) {
      const said =
        record.kind === "operator.action"
          ? await this.#forked(tenant, fence.journal, record)
          : record.kind === "run.unstuck"
            ? await this.#released(tenant, fence.journal, entry.after)
            : isAnswer(record)
              ? await this.#sent(tenant, fence.journal, record.data)
              : isByOperator(record)
                ? await this.#resolved(tenant, fence.journal, record.data, heard)
                : true;
      if (!said) return forbidden(words[record.kind] ?? record.kind);
    }
    return [fence, entry];
  }

  /** The run was created as a fork by this operator, for this reason. */
  async #forked(tenant: string, journal: number, record: NewRecord): Promise<boolean> {
    const [first] = await this.#read.journal(tenant, { journal }, { from: 1, limit: 1 });
    if (first?.kind !== "run.created" || first.data.fork === undefined) return false;
    return encode(forkAction(first.data.fork).data) === encode(record.data);
  }

  /** An operator has said that it happened, with this very value. */
  async #resolved(tenant: string, item: number, { to, value }: Settled, heard: Heard): Promise<boolean> {
    if (to !== "CONFIRMED" && to !== "COMPENSATED") return false;
    const word = heard.get(item) ?? (await this.#wordIn(tenant, item));
    heard.set(item, word);
    return (word.as === "confirmed" || word.as === "compensate") && encode(word.value) === encode(value);
  }

  /** Operators speak of an effect in its item's journal, which is short; a run's, which may be long, is not read. */
  async #wordIn(tenant: string, item: number): Promise<OperatorResolution> {
    const lease = await this.#read.lease(tenant, { journal: item });
    return lease?.kind === "item" ? operatorResolution(await this.#all(tenant, item, 1)) : {};
  }

  /** The gate's answer is a signal in this run's inbox. What its value means, the gate's schema says, which is the worker's. */
  async #sent(tenant: string, journal: number, { note }: RecordData<"gate.resolved">): Promise<boolean> {
    if (!Number.isSafeInteger(note) || note! < 1) return false;
    const [signal] = await this.#read.journal(tenant, { journal }, { from: note!, limit: 1, inbox: true });
    return signal?.kind === "signal.sent" && signal.seq === note;
  }

  /** One of the effects that the run is stuck on has been resolved since. */
  async #released(tenant: string, journal: number, head: number): Promise<boolean> {
    if (!(await this.#isStuckAt(tenant, journal, head))) return false;
    const tail = await this.#sinceStuck(tenant, journal, head);
    const [stuck] = tail;
    const on = stuck?.kind === "run.stuck" ? (stuck.data.effects ?? []) : [];
    if (on.length === 0) return false;
    const parked = tail.find(({ kind }) => kind === "term.ended") as { data: RecordData<"term.ended"> } | undefined;
    const notes = await this.#all(tenant, journal, (parked?.data.notesTaken ?? 0) + 1, true);
    return notes.some((note) => {
      if (note.kind !== "effect.outcome" || note.data.status === "STUCK") return false;
      const { run = journal, pos, sub } = note.data;
      return on.some((one) => one.run === run && one.pos === pos && one.sub === sub);
    });
  }

  /** Asked before the journal is searched: `head` is what a caller sent, and may be any number. */
  async #isStuckAt(tenant: string, journal: number, head: number): Promise<boolean> {
    const name = (await this.#read.lease(tenant, { journal }))?.name ?? undefined;
    const run = name === undefined ? undefined : await this.#read.run(tenant, name);
    if (run?.journal !== journal || run.status !== "STUCK") return false;
    const end = await this.#read.journal(tenant, { journal }, { from: head, limit: 2 });
    return end.length === 1 && end.more !== true;
  }

  /** From the last `run.stuck` on; empty where there is none. */
  async #sinceStuck(tenant: string, journal: number, head: number): Promise<JournalRecord[]> {
    let tail: JournalRecord[] = [];
    for (let from = head + 1; from > 1; ) {
      const limit = Math.min(backRows, from - 1);
      from -= limit;
      const until = from + limit;
      const page: JournalRecord[] = [];
      const read = (next: number) => this.#read.journal(tenant, { journal }, { from: next, limit: until - next });
      for await (const some of journalPages(read, from)) {
        page.push(...some);
        if (from + page.length >= until) break;
      }
      tail = [...page, ...tail];
      const at = tail.findLastIndex(({ kind }) => kind === "run.stuck");
      if (at >= 0) return tail.slice(at);
    }
    return [];
  }

  async #all(tenant: string, journal: number, first: number, inbox = false): Promise<JournalRecord[]> {
    const page = (from: number) => this.#read.journal(tenant, { journal }, { from, inbox });
    const all: JournalRecord[] = [];
    for await (const some of journalPages(page, first)) all.push(...some);
    return all;
  }
}

const words: Partial<Record<NewRecord["kind"], string>> = {
  "operator.action": "to write what an operator did",
  "run.unstuck": "to let a stuck run go on",
  "gate.resolved": "to answer a gate without a signal",
  "effect.settled": "to settle an effect as an operator",
  "obligation.settled": "to settle a compensation as an operator",
};

const isWord = (record: NewRecord): boolean =>
  isAnswer(record) || record.kind === "operator.action" || record.kind === "run.unstuck" || isByOperator(record);

/** The answer to a gate: a signal that was sent, and nothing else. */
function isAnswer(record: NewRecord): record is Extract<NewRecord, { kind: "gate.resolved" }> {
  return record.kind === "gate.resolved" && (record.data as { readonly to?: unknown } | null)?.to === "RECEIVED";
}

function isByOperator(
  record: NewRecord,
): record is Extract<NewRecord, { kind: "effect.settled" | "obligation.settled" }> {
  return (
    (record.kind === "effect.settled" || record.kind === "obligation.settled") &&
    (record.data as { readonly reason?: unknown } | null)?.reason === "operator"
  );
}

/** The credential is the starter; without credentials the caller says so itself. */
export function started(who: Call, spec: RunSpec): RunSpec {
  const starter = starterOf({ via: who.via });
  if (starter === undefined) return spec;
  const before = spec.fork === undefined ? [] : (spec.starters ?? []);
  return { ...spec, starters: [...before.filter((one) => one !== starter), starter] };
}

/** Under the credential's name, whatever the caller wrote; without what differs when the same call is sent again. */
function signed(who: Call, record: NewRecord): NewRecord {
  // Without credentials a caller is what an embedded program is: it says itself who acts.
  if (record.kind !== "operator.action" || who.token === undefined) return record;
  const { request: _request, ...via } = who.via;
  return { kind: record.kind, data: { ...record.data, who: actorOf(who, record.data.who), via } };
}

function forbidden(what: string): TapeError {
  return new TapeError("TAPE_FORBIDDEN", `${what} needs the role operator`, { needs: "operator" });
}
