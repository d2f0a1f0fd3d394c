import type { Statement } from "../../../src/store/sql/statements.ts";
import type { Scene } from "./scene.ts";

interface Node {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Filter?: string;
  readonly "Shared Hit Blocks"?: number;
  readonly "Shared Read Blocks"?: number;
  readonly Plans?: readonly Node[];
}

/** The other tables have one row, or a few. */
const tables =
  "runs records leases effects timers gates business_keys budgets names note_keys vals val_log tombstones witness idempotency_keys processes queue_partitions queue_slots";

/** How the server plans the store's statements, as the store runs them. */
export interface PlanReader {
  statement(name: string): Statement;
  /** Every scan in these statements that could be one of a whole table. */
  scansOf(names: readonly string[]): Promise<string[]>;
  /** How many pages it reads. */
  pages(name: string, values: readonly string[]): Promise<number>;
}

export async function planReader(scene: Scene): Promise<PlanReader> {
  const hand = await scene.hand();
  const { rows } = await scene.admin.query<{ index: string; first: string }>(`
    select i.indexrelid::regclass::text as index, a.attname::text as first from pg_index i
    join pg_class c on c.oid = i.indexrelid and c.relnamespace = 'tape'::regnamespace
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]`);
  const firstColumn = new Map(rows.map(({ index, first }) => [index.replace(/^tape\./, ""), first]));

  /** A named statement whose plan does not depend on the values. */
  async function explain(name: string, how: string, values: readonly string[]): Promise<Node> {
    const list = values.length === 0 ? "" : `(${values.join(", ")})`;
    await hand.sql(`prepare p as ${hand.statement(name).text}`);
    try {
      const { rows } = await hand.sql(`explain (${how}, format json) execute p${list}`);
      return (rows[0] as { "QUERY PLAN": { Plan: Node }[] })["QUERY PLAN"][0]!.Plan;
    } finally {
      await hand.sql("deallocate p");
    }
  }

  async function scans(name: string): Promise<string[]> {
    const found: string[] = [];
    const visit = (node: Node, parent?: Node): void => {
      const { "Relation Name": table = "", "Index Name": index = "", "Index Cond": condition = "" } = node;
      const first = firstColumn.get(index);
      const byIndex = first !== undefined && new RegExp(`\\b${first}\\b`).test(condition);
      // The smallest or largest of all: one entry of the index.
      const oneEntry = first !== undefined && parent?.["Node Type"] === "Limit" && node.Filter === undefined;
      if (/ Scan$/.test(node["Node Type"]) && tables.split(" ").includes(table) && !byIndex && !oneEntry) {
        found.push(`${name}: ${node["Node Type"]} of ${table} by ${index}`);
      }
      for (const child of node.Plans ?? []) visit(child, node);
    };
    visit(
      await explain(
        name,
        "costs off",
        hand.statement(name).params.map(() => "null"),
      ),
    );
    return found;
  }

  return {
    statement: (name) => hand.statement(name),
    async scansOf(names) {
      const found: string[] = [];
      for (const name of names) found.push(...(await scans(name)));
      return found;
    },
    async pages(name, values) {
      const top = await explain(name, "analyze, buffers", values);
      return (top["Shared Hit Blocks"] ?? 0) + (top["Shared Read Blocks"] ?? 0);
    },
  };
}
