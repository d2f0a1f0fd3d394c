import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { openStore } from "../../src/host/open-store.ts";
import { fill } from "../growth-fill.ts";
import { say } from "../work.ts";
import { type EndlessPart, rounded } from "./part.ts";
import type { StoreKind } from "./site.ts";

export interface LabelSizes {
  readonly runs: number;
  readonly lists: number;
}

const matching = 10;
const names = { sqlite: "Sqlite", postgres: "Postgres" } as const;

/**
 * A list by two labels, both times in a store with many runs. All of them have one of the labels, ten have the other,
 * too. `labelP99Ms` is the worse of both stores.
 */
export const labels: EndlessPart<LabelSizes> = {
  usual: { runs: 1_000_000, lists: 2_000 },
  small: { runs: 2_000, lists: 50 },
  figures: ["labelP99Ms", ...Object.values(names).flatMap((name) => [`labelP50Ms${name}`, `labelP99Ms${name}`])],
  async measure(site, { runs, lists }) {
    const figures: Record<string, number> = {};
    for (const kind of site.stores) {
      const url = await site.store(kind);
      await fill(url, runs);
      await addLabels(kind, url, runs);
      const [p50, p99] = await timeLists(url, lists);
      figures[`labelP50Ms${names[kind]}`] = p50;
      figures[`labelP99Ms${names[kind]}`] = p99;
      say(`${kind}: ${matching} of ${runs} runs by two labels, p50 ${p50} ms, p99 ${p99} ms`);
    }
    return { ...figures, labelP99Ms: Math.max(...site.stores.map((kind) => figures[`labelP99Ms${names[kind]}`]!)) };
  },
};

/** Rows as the store writes them, in bulk. */
async function addLabels(kind: StoreKind, url: string, runs: number): Promise<void> {
  const every = Math.floor(runs / matching);
  const texts = (schema: string): string[] => [
    `insert into ${schema}run_labels(tenant, key, value, journal) select tenant, 'stage', 'paid', journal from ${schema}runs`,
    `insert into ${schema}run_labels(tenant, key, value, journal)
      select tenant, 'customer', 'acme', journal from ${schema}runs where id like 'past-%' and journal % ${every} = 0 limit ${matching}`,
  ];
  if (kind === "sqlite") {
    const db = new DatabaseSync(url.slice("sqlite:".length));
    for (const text of texts("")) db.exec(text);
    db.close();
    return;
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  for (const text of [...texts("tape."), "vacuum analyze tape.run_labels"]) await client.query(text);
  await client.end();
}

async function timeLists(url: string, lists: number): Promise<[p50: number, p99: number]> {
  const store = await openStore(url);
  try {
    const times: number[] = [];
    for (let k = 0; k < lists; k++) {
      const started = performance.now();
      const found = await store.read.runs("default", { labels: { stage: "paid", customer: "acme" } });
      times.push(performance.now() - started);
      if (found.length !== matching) throw new Error(`the list has ${found.length} runs, not ${matching}`);
    }
    const sorted = times.sort((a, b) => a - b);
    return [rounded(sorted[Math.floor(lists / 2)]!), rounded(sorted[Math.floor(lists * 0.99)]!)];
  } finally {
    await store.close();
  }
}
