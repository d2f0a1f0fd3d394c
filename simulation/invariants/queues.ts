import type { FeedRecord } from "../../src/store/contract/store.ts";
import { type SlotRow, SlotTable } from "../../testkit/projection-slots.ts";
import { RevertibleMap, Rollback } from "../../testkit/revertible-map.ts";
import type { Evidence } from "../evidence.ts";
import { usesObjects } from "../plan-objects.ts";
import type { PlannedQueue } from "../plan-queues.ts";
import { mainJournals, recordsOf } from "./journal.ts";
import { across, each, exempt, type Invariant, notApplicable, settles } from "./judge.ts";

/** A waiting run: where it waits and since when. */
interface WaitingRun {
  readonly journal: number;
  readonly queue: string;
  readonly key: string;
  readonly class: number;
  /** Its place in the feed when it joined its key. */
  readonly index: number;
  readonly at: number;
}

/** Runs that got slots in one transaction. */
interface Batch {
  readonly queue: string;
  readonly at: number;
  readonly admitted: readonly WaitingRun[];
  /** Those that still wait in this queue after it. */
  readonly left: readonly WaitingRun[];
  /** Slots held after it, in all and by key. */
  readonly held: number;
  readonly heldByKey: ReadonlyMap<string, number>;
}

/** What happened in the queues, as the records say it, in the order of the feed. */
export function batchesOf({ feed, plan }: Evidence): Batch[] {
  const counts = new Map(queuesIn(plan).map(({ name, options }) => [`/${name}`, options.counts ?? "running"]));
  const slots = new SlotTable(new RevertibleMap<number, SlotRow>(new Rollback()), counts);
  const priorities = new Map<number, number>();
  const waiting = new Map<number, WaitingRun>();
  const batches: { batch: Batch; key: string }[] = [];
  const sync = (journal: number, index: number, at: number): void => {
    const slot = slots.rows.get(journal);
    if (slot?.state !== "QUEUED") waiting.delete(journal);
    else if (!waiting.has(journal)) {
      const of = slot.hasRun ? 0 : priorities.get(journal)!;
      waiting.set(journal, { journal, queue: slot.queue, key: slot.key, class: of, index, at });
    }
  };
  for (const [index, record] of feed.entries()) {
    const { journal, at } = record;
    const before = waiting.get(journal);
    fold(slots, priorities, record);
    sync(journal, index, at);
    if (record.kind !== "term.started" || record.data.admitted === undefined || before === undefined) continue;
    const key = `${record.data.owner} ${at} ${before.queue}`;
    const last = batches.at(-1);
    const admitted = last?.key === key ? [...last.batch.admitted, before] : [before];
    if (last?.key === key) batches.pop();
    const held = [...slots.rows.values()].filter((slot) => slot.queue === before.queue && slot.state === "HELD");
    const heldByKey = new Map([...Map.groupBy(held, (slot) => slot.key)].map(([of, rows]) => [of, rows.length]));
    const left = [...waiting.values()].filter(({ queue }) => queue === before.queue);
    batches.push({ key, batch: { queue: before.queue, at, admitted, left, held: held.length, heldByKey } });
  }
  return batches.map(({ batch }) => batch);
}

function fold(slots: SlotTable, priorities: Map<number, number>, record: FeedRecord): void {
  const { journal, kind, data } = record;
  if (record.in === "inbox") {
    slots.note(journal, kind, kind === "timer.fired" ? data.purpose : undefined);
    return;
  }
  if (kind === "run.created" && data.queue !== undefined) {
    const { name, key, priority } = data.queue;
    const later = data.delayMs !== undefined || data.debounce !== undefined;
    priorities.set(journal, priority);
    slots.rows.set(journal, {
      journal,
      tenant: "",
      queue: name,
      key,
      state: later ? "DELAYED" : "QUEUED",
      hasRun: false,
    });
  }
  const set = (event: Parameters<SlotTable["apply"]>[0] & { do: "slot.set" }): boolean => slots.apply(event, "");
  if (kind === "term.started") slots.startTerm(journal, data.admitted !== undefined, data.reason);
  if (kind === "term.ended") {
    set({ do: "slot.set", journal, event: { of: "released", wanted: data.nextReactor !== undefined } });
  }
  if (kind === "run.decided") set({ do: "slot.set", journal, event: { of: "decided" } });
  if (kind === "run.ended") set({ do: "slot.set", journal, event: { of: "ended" } });
}

/** Objects promise to have a queue with these limits. */
const objectQueue: Pick<PlannedQueue, "name" | "options"> = {
  name: "object roster",
  options: { counts: "started", perKey: { concurrency: 1 } },
};
const queuesIn = (plan: Evidence["plan"]): Pick<PlannedQueue, "name" | "options">[] => [
  ...plan.queues.queues,
  ...(usesObjects(plan) ? [objectQueue] : []),
];

const optionsOf = ({ plan }: Evidence, queue: string) => queuesIn(plan).find(({ name }) => name === queue)!.options;

/** The highest limit that may have been in effect at this time. A store that went back may have any earlier limit. */
function limitAt(evidence: Evidence, queue: string, at: number): number {
  if (evidence.lost !== undefined && at >= evidence.lost.from) return maxLimit(evidence, queue);
  const changes = evidence.limitChanges.filter((one) => one.queue === queue && one.from <= at);
  const settled = changes.filter(({ to }) => to < at).toSorted((a, b) => a.to - b.to);
  const last = settled.at(-1);
  const possible = changes.filter((one) => last === undefined || one.to >= last.from);
  const before = last === undefined ? [optionsOf(evidence, queue).concurrency ?? Number.POSITIVE_INFINITY] : [];
  return Math.max(...before, ...possible.map(({ concurrency }) => concurrency));
}

/** No more runs hold slots than the limits allow, by the records and by the bodies themselves. */
export const slotsHold: Invariant = (evidence) => {
  const byRecords = each(batchesOf(evidence), ({ queue, at, held, heldByKey, admitted }) => {
    const limit = limitAt(evidence, queue, at);
    const perKey = optionsOf(evidence, queue).perKey?.concurrency ?? Number.POSITIVE_INFINITY;
    const keys = admitted.filter(({ key }) => heldByKey.get(key)! > perKey);
    return [
      ...(held > limit ? [`${queue} has ${held} runs in ${limit} slots at ${at}`] : []),
      ...keys.map(({ key }) => `key ${key} of ${queue} has ${heldByKey.get(key)} runs in ${perKey} slots at ${at}`),
    ];
  });
  const inside = new Map<string, Set<string>>();
  const endOf = new Map(evidence.runs.map(({ id, endedAt }) => [id, endedAt ?? Number.POSITIVE_INFINITY]));
  const byBodies = each(rememberedEvents(evidence), ({ what, run, queue, at }) => {
    const runs = inside.get(queue) ?? new Set<string>();
    inside.set(queue, runs);
    // A run that was cancelled after its process had died inside does not go in again.
    for (const one of runs) if (endOf.get(one)! <= at) runs.delete(one);
    if (what === "leave") runs.delete(run);
    else if (endOf.get(run)! > at) runs.add(run);
    const limit = Math.max(limitAt(evidence, queue, Number.POSITIVE_INFINITY), maxLimit(evidence, queue));
    return runs.size > limit ? [`${runs.size} runs of ${queue} are inside, at most ${limit} may be`] : [];
  });
  return { judged: byRecords.judged + byBodies.judged, faults: [...byRecords.faults, ...byBodies.faults] };
};

/** Without the bodies of terms that the store has lost: it may give their slots to others while they still run. */
function rememberedEvents({ insideEvents, lost, feed }: Evidence): Evidence["insideEvents"] {
  if (lost === undefined) return insideEvents;
  // By run and token: a run that was lost and started again has another journal.
  const termsIn = (records: readonly FeedRecord[], known: ReadonlyMap<number, string>): Set<string> => {
    const ids = new Map(known);
    return new Set(
      records.flatMap((record) => {
        if (record.kind === "run.created") ids.set(record.journal, record.data.id);
        return record.in === "journal" ? [`${ids.get(record.journal)} ${record.token}`] : [];
      }),
    );
  };
  const idsBefore = feed.flatMap((record): [number, string][] =>
    record.kind === "run.created" && record.at <= lost.from ? [[record.journal, record.data.id]] : [],
  );
  const kept = termsIn(feed, new Map());
  const forgotten = termsIn(lost.feed, new Map(idsBefore));
  return insideEvents.filter(({ run, token }) => {
    const term = `${run} ${token}`;
    return kept.has(term) || !forgotten.has(term);
  });
}

const maxLimit = (evidence: Evidence, queue: string): number =>
  Math.max(
    optionsOf(evidence, queue).concurrency ?? Number.POSITIVE_INFINITY,
    ...evidence.limitChanges.filter((one) => one.queue === queue).map(({ concurrency }) => concurrency),
  );

/** Slots and the counters of keys are what the records say. */
export const slotsAreProjected: Invariant = ({ projection, plan }) =>
  queuesIn(plan).length === 0
    ? notApplicable
    : {
        judged: plan.queues.runs.length + plan.objects.calls.length,
        faults: projection.filter((line) => /queue|slot|lease/.test(line)),
      };

const free: ReadonlySet<string> = new Set([
  "run.created",
  "term.started",
  "term.ended",
  "operator.action",
  "notes.taken",
]);

/** A run of a queue does nothing before it has got a slot. */
export const nothingPassesTheQueue: Invariant = (evidence) =>
  each(mainJournals(evidence), ({ id, records }) => {
    const [first] = records;
    if (first?.kind !== "run.created" || first.data.queue === undefined) return exempt;
    const admitted = records.findIndex((one) => one.kind === "term.started" && one.data.admitted !== undefined);
    const early = (admitted < 0 ? records : records.slice(0, admitted)).filter(
      (one) =>
        !free.has(one.kind) &&
        !(one.kind === "run.ended" && one.data.status === "CANCELLED") &&
        one.kind !== "run.decided",
    );
    return early.map(({ seq, kind }) => `${id}, ${seq}: ${kind} without a slot`);
  });

/** Any window has at most limit + burst - 1 first starts. */
export const ratesHold: Invariant = (evidence) => {
  const firsts = batchesOf(evidence).flatMap(({ at, admitted }) =>
    admitted.flatMap((run) => (run.class === 0 ? [] : [{ ...run, at }])),
  );
  return across(evidence.plan.queues.queues, ({ name, options }) => {
    const own = firsts.filter(({ queue }) => queue === name);
    const groups = [
      ...(options.rate ? [{ rate: options.rate, starts: own }] : []),
      ...(options.perKey?.rate
        ? [...Map.groupBy(own, ({ key }) => key).values()].map((starts) => ({ rate: options.perKey!.rate!, starts }))
        : []),
    ];
    return across(groups, ({ rate, starts }) =>
      each(starts, ({ at }) => {
        const count = starts.filter((one) => one.at >= at && one.at < at + Number(rate.per)).length;
        const limit = rate.limit + (rate.burst ?? 1) - 1;
        return count > limit ? [`${name}: ${count} starts within ${rate.per} ms, at most ${limit} may be`] : [];
      }),
    );
  });
};

/** Of two runs of one key and priority, the one that waits for longer starts first. */
export const oldestFirst: Invariant = (evidence) =>
  across(batchesOf(evidence), ({ admitted, left }) =>
    each(admitted, (run) => {
      const rivals = left.filter((one) => one.key === run.key && one.class === run.class);
      if (rivals.length === 0) return exempt;
      const older = rivals.filter((one) => one.at < run.at);
      return older.map((one) => `journal ${run.journal} starts before ${one.journal}, which waits since ${one.at}`);
    }),
  );

/** A queue without limits per key, rates or operators: what can be compared from outside. */
function isPlain({ plan }: Evidence, queue: string): boolean {
  const { pauses, takeovers } = plan.queues;
  const { rate, perKey } = queuesIn(plan).find(({ name }) => name === queue)!.options;
  const operated = [...takeovers, ...pauses].some((one) => one.queue === queue);
  return rate === undefined && perKey === undefined && !operated;
}

/** Runs that continue come first, then the lower priorities, in all keys of a queue. */
export const classesAreKept: Invariant = (evidence) =>
  across(batchesOf(evidence), ({ queue, admitted, left }) =>
    !isPlain(evidence, queue) || left.length === 0
      ? notApplicable
      : each(admitted, (run) =>
          left
            .filter((one) => one.class < run.class)
            .map(
              (one) => `${queue}: class ${run.class} starts while journal ${one.journal} of class ${one.class} waits`,
            ),
        ),
  );

/** Keys that wait side by side get the same number of starts, up to two more. */
export const fairAmongKeys: Invariant = (evidence) =>
  across(evidence.plan.queues.queues, ({ name }) => {
    if (!isPlain(evidence, name)) return notApplicable;
    const counts = new Map<string, number>();
    return each(
      batchesOf(evidence).filter(({ queue }) => queue === name),
      ({ admitted, left }) => {
        const classes = new Set([...admitted, ...left].map((one) => one.class));
        const waits = new Set(left.map(({ key }) => key));
        const keys = new Set([...admitted.map(({ key }) => key), ...waits]);
        // Only while all of them are in one class, and have more.
        if (classes.size !== 1) counts.clear();
        for (const key of counts.keys()) if (!keys.has(key)) counts.delete(key);
        for (const { key } of admitted) counts.set(key, (counts.get(key) ?? 0) + 1);
        const compared = [...keys].filter((key) => waits.has(key));
        for (const key of [...counts.keys()]) if (!waits.has(key)) counts.delete(key);
        if (classes.size !== 1 || compared.length < 2) return exempt;
        const values = compared.map((key) => counts.get(key) ?? 0);
        const apart = Math.max(...values) - Math.min(...values);
        return apart > 2 + admitted.length
          ? [`${name}: keys ${compared.join(", ")} got ${values.join(", ")} starts`]
          : [];
      },
    );
  });

/** At most one live run of the workflow has a unique key. */
export const uniqueIsOne: Invariant = ({ feed }) => {
  const live = new Map<string, number>();
  const keys = new Map<number, string>();
  return each(feed, ({ kind, data, journal }) => {
    if (kind === "run.ended" && live.get(keys.get(journal) ?? "") === journal) live.delete(keys.get(journal)!);
    if (kind !== "run.created" || data.unique === undefined) return exempt;
    const key = `${data.workflow} ${data.unique.key}`;
    keys.set(journal, key);
    const other = live.get(key);
    live.set(key, journal);
    return other === undefined ? [] : [`journals ${other} and ${journal} are live with the unique key ${key}`];
  });
};

/** A debounced run gets the last input that came before its start, and none after it. */
export const lastInputWins: Invariant = (evidence) =>
  each(mainJournals(evidence), ({ id, journal, records }) => {
    const [first] = records;
    if (first?.kind !== "run.created" || first.data.debounce === undefined) return exempt;
    const inbox = evidence.feed.filter((record) => record.in === "inbox" && record.journal === journal);
    const fired = inbox.findIndex((record) => record.kind === "timer.fired" && record.data.purpose === "start");
    const moves = inbox.filter(({ kind }) => kind === "start.moved");
    const late = fired < 0 ? [] : inbox.slice(fired).filter(({ kind }) => kind === "start.moved");
    const last = moves.at(-1);
    const input = (last?.kind === "start.moved" ? last.data.input : first.data.input) as {
      readonly ops: readonly { readonly mark?: string }[];
    };
    const mark = input.ops[0]?.mark;
    const other = rememberedEvents(evidence).filter((event) => event.run === id && event.mark !== mark);
    return [
      ...late.map(({ seq }) => `${id}: start ${seq} came after its timer had fired`),
      ...other.map((event) => `${id} ran with the input of ${event.mark}, not of ${mark}`),
    ];
  });

/** Every run of a queue ends, once all faults are healed. */
export const queuesMove: Invariant = (evidence) => {
  if (!settles(evidence) || evidence.settledAt === undefined) return notApplicable;
  return each(evidence.runs, ({ id, journal, endedAt, status }) => {
    const [first] = recordsOf(evidence, journal);
    if (first?.kind !== "run.created" || first.data.queue === undefined) return exempt;
    return endedAt === null ? [`${id} is still ${status}`] : [];
  });
};
