import type { FeedRecord, Store } from "../src/store/contract/store.ts";
import { tenant } from "./stage.ts";

/** The runs that a list by one label has. */
export interface LabelList {
  readonly key: string;
  readonly value: string;
  readonly runs: readonly string[];
}

/** What a record sets; undefined: it sets no label. */
export const labelsIn = ({ kind, data }: FeedRecord): Readonly<Record<string, string>> | undefined =>
  kind === "labels.set" ? data.set : kind === "run.created" ? data.labels : undefined;

export async function labelListsOf(store: Store, feed: readonly FeedRecord[]): Promise<LabelList[]> {
  const pairs = new Map(
    feed.flatMap((record) => Object.entries(labelsIn(record) ?? {})).map((pair) => [JSON.stringify(pair), pair]),
  );
  const lists: LabelList[] = [];
  for (const [key, value] of pairs.values()) {
    const runs = await store.read.runs(tenant, { labels: { [key]: value } });
    lists.push({ key, value, runs: runs.map(({ id }) => id) });
  }
  return lists;
}
