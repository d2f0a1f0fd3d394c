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
}

/** The rules of a fan-out, by the receiver's own ledger. */
export function judgeSink({ started, runs, ids, ledger, window, deadLetters }: SinkEvidence): Rule[] {
  const entries = ledger.map((entry): LedgerEntry => ({ ...entry, token: BigInt(entry.token) }));
  const received = new Set(ledger.map(({ id }) => id));
  const terms = new Set(ledger.map(({ token }) => token)).size;
  const { lost, outOfOrder } = compare(ids, entries);
  const missing = ids.filter((id) => !received.has(id));
  const example = missing.length > 0 ? `, such as ${missing.slice(0, 3).join(", ")}` : "";
  return [
    {
      rule: "every acknowledged start exists, and its run completed",
      checked: started.length,
      broken: settled(started, runs),
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
      rule: "the receiver got nothing that the feed does not have",
      checked: received.size,
      broken: unknown(received, ids),
    },
    {
      rule: "the events of each journal arrived in order",
      checked: new Set(ledger.map(({ journal }) => journal)).size,
      broken: outOfOrder > 0 ? [`${outOfOrder} events arrived behind a later one of their journal`] : [],
    },
    { rule: "a term repeats at most a window", checked: terms, broken: repeats(ledger, window) },
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
  const broken = [...perTerm].filter(([, times]) => times > window);
  return [
    ...broken.map(([token, times]) => `the term of token ${token} repeated ${times} of ${window} events`),
    ...blind,
  ];
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
