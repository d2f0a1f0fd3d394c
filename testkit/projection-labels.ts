import type { Change } from "../src/model/changes.ts";
import type { Store } from "../src/store/contract/store.ts";
import type { RunState } from "./projection-rows.ts";
import { RevertibleMap, type Rollback } from "./revertible-map.ts";

type LabelState = Readonly<Record<"tenant" | "key" | "value", string>>;
const entriesOf = (labels: string | null | undefined): [string, string][] =>
  Object.entries(JSON.parse(labels ?? "{}") as Record<string, string>);

/** Every label that a run ever had, so that removed ones are checked, too. The runs have their current ones. */
export class LabelTable {
  readonly rows: RevertibleMap<string, LabelState>;

  constructor(rollback: Rollback) {
    this.rows = new RevertibleMap(rollback);
  }

  add(tenant: string, labels: string | null): void {
    for (const [key, value] of entriesOf(labels)) {
      this.rows.set(JSON.stringify([tenant, key, value]), { tenant, key, value });
    }
  }

  change(runs: RevertibleMap<number, RunState>, { run, set, unset }: Extract<Change, { do: "labels.set" }>): boolean {
    const before = runs.get(run);
    if (before === undefined) return false;
    const labels = new Map([...entriesOf(before.labels), ...entriesOf(set)]);
    for (const key of JSON.parse(unset) as string[]) labels.delete(key);
    const text = JSON.stringify(Object.fromEntries(labels));
    this.add(before.tenant, text);
    return runs.change(run, { labels: text });
  }
}

interface RunTables {
  readonly runs: ReadonlyMap<number, RunState>;
  readonly labels: LabelTable;
}

/** What each list by one label has, and what the records give: title, found, expected. */
export async function labelRows(
  store: Store,
  tenant: string,
  tables: RunTables,
): Promise<[string, number[], number[]][]> {
  const rows: [string, number[], number[]][] = [];
  const runs = [...tables.runs.values()].filter((run) => run.tenant === tenant && run.labels !== null);
  const labels = new Map(
    runs.map(({ journal, labels: text }) => [journal, JSON.parse(text!) as Record<string, string>]),
  );
  for (const { tenant: of, key, value } of tables.labels.rows.values()) {
    if (of !== tenant) continue;
    const expected = [...labels].filter(([, own]) => Object.hasOwn(own, key) && own[key] === value);
    const journals = expected.map(([journal]) => journal).sort((a, b) => b - a);
    rows.push([`the list of runs with ${key} ${value}`, await listed(store, tenant, { [key]: value }), journals]);
  }
  return rows;
}

async function listed(store: Store, tenant: string, labels: Record<string, string>): Promise<number[]> {
  const journals: number[] = [];
  for (;;) {
    const before = journals.at(-1);
    const page = await store.read.runs(tenant, { labels, ...(before !== undefined && { before }) });
    if (page.length === 0) return journals;
    journals.push(...page.map(({ journal }) => journal));
  }
}
