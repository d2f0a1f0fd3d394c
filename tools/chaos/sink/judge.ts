import { judge as compare, type LedgerEntry } from "../../../bench/events/receiver.ts";
import type { Rule } from "../judge.ts";
import type { SinkEntry } from "./receiver-messages.ts";

export interface SinkEvidence {
  /** Starts that were acknowledged, and the runs of the store with their ends. */
  readonly started: readonly string[];
  readonly runs: readonly { readonly id: string; readonly status: string }[];
  /** Every record of the feed, by the id of its event. */
  readonly ids: readonly string[];
  /** The receiver's own ledger, in its order. */
  readonly ledger: readonly SinkEntry[];
  /** The most that one term may repeat. */
  readonly window: number;
  /** Fan-outs that were killed or stopped. A busy machine may lose a term without any. */
  readonly deaths: number;
  /** Events that the store holds as dead letters. */
  readonly deadLetters: number;
  /** The store has lost writes that it had acknowledged, and was restored each time. */
  readonly loss: boolean;
}

/** The event that announces a restore: it is no record of the feed. */
export const isRestore = (id: string): boolean => id.startsWith("restored:");

/** Events of records that the store lost afterwards. */
export function sentAndLost({ ids, ledger }: Pick<SinkEvidence, "ids" | "ledger">): SinkEntry[] {
  const known = new Set(ids);
  return ledger.filter(({ id }) => !known.has(id) && !isRestore(id));
}

/** What the store lost, for the report. */
export function lostOf(evidence: SinkEvidence): string[] {
  const exists = new Set(evidence.runs.map(({ id }) => id));
  const starts = evidence.started.filter((id) => !exists.has(id)).length;
  return [`${starts} acknowledged starts`, `${sentAndLost(evidence).length} records whose events were sent`];
}

/** The rules of a fan-out, by the receiver's own ledger. */
export function judgeSink(evidence: SinkEvidence): Rule[] {
  const { started, runs, ids, ledger, window, deadLetters, loss } = evidence;
  // A journal that lost its tail continues it with other records: its order counts from each restore.
  const entries = ledger.map(
    ({ journal, ...entry }): LedgerEntry => ({
      ...entry,
      journal: `${journal} ${entry.epoch}`,
      token: BigInt(entry.token),
    }),
  );
  const received = new Set(ledger.map(({ id }) => id));
  const terms = new Set(ledger.map(({ token }) => token)).size;
  const { lost, outOfOrder } = compare(ids, entries);
  const missing = ids.filter((id) => !received.has(id));
  const example = missing.length > 0 ? `, such as ${missing.slice(0, 3).join(", ")}` : "";
  return [
    {
      rule: loss
        ? "every run that the store has is completed"
        : "every acknowledged start exists, and its run completed",
      checked: started.length,
      broken: settled(loss ? [] : started, runs),
    },
    {
      rule: "every record of the feed arrived, and none is a dead letter",
      checked: ids.length,
      broken: [
        ...(lost > 0 ? [`${lost} events never arrived${example}`] : []),
        ...(deadLetters > 0 ? [`${deadLetters} events are dead letters`] : []),
      ],
    },
    {
      rule: loss
        ? "what the feed does not have was sent before a restore, and every restore was announced before its events"
        : "the receiver got nothing that the feed does not have",
      checked: received.size,
      broken: loss ? unannounced(evidence) : unknown(received, ids),
    },
    {
      rule: "the events of each journal arrived in order",
      checked: new Set(ledger.map(({ journal }) => journal)).size,
      broken: outOfOrder > 0 ? [`${outOfOrder} events arrived behind a later one of their journal`] : [],
    },
    {
      rule: loss
        ? "a term repeats at most a window, except the first one after a restore"
        : "a term repeats at most a window",
      checked: terms,
      broken: repeats(ledger, window),
    },
    {
      rule: "a batch behind a successor's carries the lower token, and a token has one process",
      checked: terms,
      broken: sharedTokens(ledger),
    },
  ];
}

function settled(started: readonly string[], runs: SinkEvidence["runs"]): string[] {
  const statuses = new Map(runs.map(({ id, status }) => [id, status]));
  const all = new Set([...started, ...statuses.keys()]);
  return [...all].flatMap((id) => {
    const status = statuses.get(id);
    return status === "COMPLETED" ? [] : [`run ${id} ${status === undefined ? "does not exist" : `is ${status}`}`];
  });
}

function unknown(received: ReadonlySet<string>, ids: readonly string[]): string[] {
  const known = new Set(ids);
  return [...received].filter((id) => !known.has(id)).map((id) => `event ${id} is not in the feed`);
}

function unannounced(evidence: SinkEvidence): string[] {
  const last = Math.max(0, ...evidence.ledger.map(({ epoch }) => epoch));
  const announced = new Set([0]);
  const early = new Set<number>();
  for (const { id, epoch } of evidence.ledger) {
    if (isRestore(id)) announced.add(epoch);
    else if (!announced.has(epoch)) early.add(epoch);
  }
  return [
    ...sentAndLost(evidence)
      .filter(({ epoch }) => epoch === last)
      .map(({ id }) => `event ${id} is not in the feed, and no restore followed it`),
    ...[...early].map((epoch) => `events came after restore ${epoch} before it was announced`),
  ];
}

/**
 * Repeats of each term: events that were in the ledger before. Within a term only an event whose request was held, or
 * whose answer was lost, may come again.
 */
export function repeatsOf(ledger: readonly SinkEntry[]): { perTerm: ReadonlyMap<string, number>; blind: string[] } {
  const before = new Map<string, { readonly tokens: Set<string>; unanswered: boolean }>();
  const perTerm = new Map<string, number>();
  const blind: string[] = [];
  for (const { id, token, unanswered } of ledger) {
    perTerm.set(token, perTerm.get(token) ?? 0);
    const seen = before.get(id);
    if (seen === undefined) {
      before.set(id, { tokens: new Set([token]), unanswered });
      continue;
    }
    if (!seen.tokens.has(token)) perTerm.set(token, perTerm.get(token)! + 1);
    else if (!seen.unanswered && !unanswered)
      blind.push(`event ${id} was sent again under token ${token} after its answer`);
    seen.tokens.add(token);
    seen.unanswered ||= unanswered;
  }
  return { perTerm, blind };
}

function repeats(ledger: readonly SinkEntry[], window: number): string[] {
  const { perTerm, blind } = repeatsOf(ledger);
  const first = firstTerms(ledger);
  const broken = [...perTerm].filter(([token, times]) => times > window && !first.has(token));
  return [
    ...broken.map(([token, times]) => `the term of token ${token} repeated ${times} of ${window} events`),
    ...blind,
  ];
}

/** The first term after each restore: its checkpoint is as old as the restored store. */
function firstTerms(ledger: readonly SinkEntry[]): ReadonlySet<string> {
  const first = new Map<number, string>();
  for (const { epoch, token } of ledger) if (epoch > 0 && !first.has(epoch)) first.set(epoch, token);
  return new Set(first.values());
}

function sharedTokens(ledger: readonly SinkEntry[]): string[] {
  return [...Map.groupBy(ledger, ({ token }) => token)].flatMap(([token, same]) => {
    const workers = [...new Set(same.map(({ worker }) => worker))];
    return workers.length > 1 ? [`token ${token} was used by ${workers.join(" and ")}`] : [];
  });
}

/** Batches that arrived under a lower token than the highest before them. */
export function staleEntries(ledger: readonly SinkEntry[]): number {
  let highest = 0n;
  let stale = 0;
  for (const { token } of ledger) {
    if (BigInt(token) < highest) stale++;
    else highest = BigInt(token);
  }
  return stale;
}
