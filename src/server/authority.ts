import { encode } from "../base/codec.ts";
import { forkAction } from "../engine/drive/kept-records.ts";
import { type OperatorResolution, operatorResolution } from "../engine/item/operator-resolution.ts";
import { starterOf } from "../model/approvers.ts";
import { TapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";
import { redriveTimer } from "../model/projection.ts";
import type { Credential, JournalRecord, NewRecord, RecordData } from "../model/records.ts";
import { mayDo } from "../protocol/route.ts";
import type { AppendRequest, ReadOps, RunSpec } from "../store/contract/store.ts";
import { journalPages } from "../store/read-all.ts";
import { actorOf, type Call } from "./handler-types.ts";

type Item = readonly [Fence, AppendRequest];
/** Operators' resolutions that this call has read, by the item's journal. */
type ReadResolutions = Map<number, OperatorResolution>;
type Settlement = RecordData<"effect.settled"> | RecordData<"obligation.settled">;

/** Records per page when reading backwards from a journal's end. */
const backRows = 100;

/**
 * Decides who may write a record. A worker writes what its code did. An operator's record needs a credential with the
 * role operator and carries that credential's name. A worker may only pass on what an operator has recorded already:
 * the settlement of an effect that an operator resolved, the end of a stuck run's wait for such a resolution, and the
 * note in a fork's journal that names its operator.
 */
export class Authority {
  readonly #read: ReadOps;

  constructor(read: ReadOps) {
    this.#read = read;
  }

  /** Returns each item as it may be written, or the error that forbids it. */
  async judged(who: Call, batch: readonly Item[]): Promise<(Item | TapeError)[]> {
    const judged: (Item | TapeError)[] = [];
    const read: ReadResolutions = new Map();
    for (const item of batch)
      judged.push(item[1].records.some(needsAuthority) ? await this.#judge(who, item, read) : item);
    return judged;
  }

  /** A fork repeats effects: only an operator may request one, and the server records the operator. */
  specs(who: Call, specs: readonly RunSpec[]): readonly RunSpec[] {
    return specs.map((given) => {
      const spec = started(who, given);
      if (spec.fork === undefined) return spec;
      if (!mayDo(who.role, "operator")) throw forbidden("forking a run");
      return { ...spec, fork: { ...spec.fork, by: actorOf(who, spec.fork.by), via: who.via } };
    });
  }

  async #judge(who: Call, [fence, entry]: Item, read: ReadResolutions): Promise<Item | TapeError> {
    if (mayDo(who.role, "operator")) {
      return [fence, { ...entry, records: entry.records.map((record) => signed(who, record)) }];
    }
    const { tenant } = who;
    for (const record of entry.records) {
      const allowed =
        record.kind === "operator.action"
          ? await this.#isForkNote(tenant, fence.journal, record)
          : isOperatorTimer(record)
            ? false
            : record.kind === "run.unstuck"
              ? await this.#isUnstuck(tenant, fence.journal, entry.after)
              : isAnswer(record)
                ? await this.#isSignalled(tenant, fence.journal, record.data)
                : isByOperator(record)
                  ? await this.#isResolved(tenant, fence.journal, record.data, read)
                  : true;
      if (!allowed) return forbidden(actions[record.kind] ?? record.kind);
    }
    return [fence, entry];
  }

  /** The run was created as a fork by this operator, with this reason. */
  async #isForkNote(tenant: string, journal: number, record: NewRecord): Promise<boolean> {
    const [first] = await this.#read.journal(tenant, { journal }, { from: 1, limit: 1 });
    if (first?.kind !== "run.created" || first.data.fork === undefined) return false;
    return encode(forkAction(first.data.fork).data) === encode(record.data);
  }

  /** An operator has resolved the effect as confirmed, with this value. */
  async #isResolved(tenant: string, item: number, { to, value }: Settlement, read: ReadResolutions): Promise<boolean> {
    if (to !== "CONFIRMED" && to !== "COMPENSATED") return false;
    const resolution = read.get(item) ?? (await this.#resolutionIn(tenant, item));
    read.set(item, resolution);
    const { as } = resolution;
    return (as === "confirmed" || as === "compensate") && encode(resolution.value) === encode(value);
  }

  /** Operators resolve an effect in its item's journal, which is short. A run's journal may be long and is not read. */
  async #resolutionIn(tenant: string, item: number): Promise<OperatorResolution> {
    const lease = await this.#read.lease(tenant, { journal: item });
    return lease?.kind === "item" ? operatorResolution(await this.#all(tenant, item, 1)) : {};
  }

  /** The gate's answer is a signal in this run's inbox. The worker interprets its value by the gate's schema. */
  async #isSignalled(tenant: string, journal: number, { note }: RecordData<"gate.resolved">): Promise<boolean> {
    if (!Number.isSafeInteger(note) || note! < 1) return false;
    const [signal] = await this.#read.journal(tenant, { journal }, { from: note!, limit: 1, inbox: true });
    return signal?.kind === "signal.sent" && signal.seq === note;
  }

  /** Since the run is stuck, one of the effects that it is stuck on has been resolved, or a redrive has fallen due. */
  async #isUnstuck(tenant: string, journal: number, head: number): Promise<boolean> {
    if (!(await this.#isStuckAt(tenant, journal, head))) return false;
    const tail = await this.#sinceStuck(tenant, journal, head);
    const [stuck] = tail;
    if (stuck?.kind !== "run.stuck") return false;
    const stuckEffects = stuck.data.effects ?? [];
    const parked = tail.find(({ kind }) => kind === "term.ended") as { data: RecordData<"term.ended"> } | undefined;
    const notes = await this.#all(tenant, journal, (parked?.data.notesTaken ?? 0) + 1, true);
    return notes.some((note) => {
      if (note.kind === "timer.fired") return note.data.purpose === redriveTimer && note.data.pos > stuck.seq;
      if (note.kind !== "effect.outcome" || note.data.status === "STUCK") return false;
      const { run = journal, pos, sub } = note.data;
      return stuckEffects.some((effect) => effect.run === run && effect.pos === pos && effect.sub === sub);
    });
  }

  /** Checked before the journal is searched: the caller sends `head`, which may be any number. */
  async #isStuckAt(tenant: string, journal: number, head: number): Promise<boolean> {
    const name = (await this.#read.lease(tenant, { journal }))?.name ?? undefined;
    const run = name === undefined ? undefined : await this.#read.run(tenant, name);
    if (run?.journal !== journal || run.status !== "STUCK") return false;
    const end = await this.#read.journal(tenant, { journal }, { from: head, limit: 2 });
    return end.length === 1 && end.more !== true;
  }

  /** The records from the last `run.stuck` on; empty if there is none. */
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

const actions: Partial<Record<NewRecord["kind"], string>> = {
  "operator.action": "recording an operator action",
  "run.unstuck": "resuming a stuck run",
  "timer.set": "setting the timer of a redrive",
  "timer.cancelled": "cancelling the timer of a redrive",
  "gate.resolved": "answering a gate without a signal",
  "effect.settled": "settling an effect as an operator",
  "obligation.settled": "settling a compensation as an operator",
};

const needsAuthority = (record: NewRecord): boolean =>
  isAnswer(record) ||
  record.kind === "operator.action" ||
  record.kind === "run.unstuck" ||
  isOperatorTimer(record) ||
  isByOperator(record);

/** Only operators set and cancel timers that resume a stuck run. */
const isOperatorTimer = (record: NewRecord): boolean =>
  (record.kind === "timer.set" || record.kind === "timer.cancelled") &&
  (record.data as { readonly purpose?: unknown } | null)?.purpose === redriveTimer;

/** The answer to a gate must be a signal that was sent. */
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

/** The credential is the starter; without credentials the caller names itself. */
export function started(who: Call, given: RunSpec): RunSpec {
  const { signals } = given;
  const spec = signals === undefined ? given : { ...given, signals: signals.map((signal) => stamped(who, signal)) };
  const starter = starterOf({ via: who.via });
  if (starter === undefined) return spec;
  const before = spec.fork === undefined ? [] : (spec.starters ?? []);
  return { ...spec, starters: [...before.filter((name) => name !== starter), starter] };
}

/** A note with its sender. Without credentials it is the same as an embedded program's. */
export function stamped<T extends { readonly by?: string }>(
  who: Call,
  note: T,
): T & { readonly by?: string; readonly via?: Credential } {
  const by = note.by === undefined && who.token === undefined ? {} : { by: actorOf(who, note.by) };
  return { ...note, ...by, ...(who.token !== undefined && { via: who.via }) };
}

/** Replaces the name with the credential's, and leaves out what differs when the same call is repeated. */
function signed(who: Call, record: NewRecord): NewRecord {
  // Without credentials a caller is like an embedded program: it names the operator itself.
  if (record.kind !== "operator.action" || who.token === undefined) return record;
  const { request: _request, ...via } = who.via;
  return { kind: record.kind, data: { ...record.data, by: actorOf(who, record.data.by), via } };
}

function forbidden(what: string): TapeError {
  return new TapeError("TAPE_FORBIDDEN", `${what} needs the role operator`, { needs: "operator" });
}
