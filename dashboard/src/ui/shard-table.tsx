import type { Lease } from "../api.ts";
import { Table } from "./table.tsx";
import { labelsOf } from "./use-processes.ts";

/** "sweep 3/16" is the lease of shard 3 of 16 of the singleton sweep. */
export function shardOfLease({ name, kind }: Pick<Lease, "name" | "kind">) {
  const read = kind === "name" ? /^(.+) (\d{1,4})\/(\d{1,4})$/s.exec(name ?? "") : null;
  return read === null ? undefined : { singleton: read[1]!, index: Number(read[2]), of: Number(read[3]) };
}

interface ShardSpread {
  readonly singleton: string;
  readonly of: number;
  readonly held: ReadonlyMap<number, Lease>;
}

/** Each number of shards has its own leases: after a reshard the old ones are free. */
function shardedOf(leases: readonly Lease[]): ShardSpread[] {
  const found = new Map<string, { singleton: string; of: number; held: Map<number, Lease> }>();
  for (const lease of leases) {
    const shard = shardOfLease(lease);
    if (shard === undefined || lease.state !== "HELD") continue;
    const { singleton, index, of } = shard;
    const key = `${singleton}/${of}`;
    const entry = found.get(key) ?? { singleton, of, held: new Map<number, Lease>() };
    found.set(key, entry);
    entry.held.set(index, lease);
  }
  return [...found.values()];
}

const maxMissing = 12;

function missingText({ of, held }: ShardSpread): string {
  const missing = Array.from({ length: of }, (_, index) => index).filter((index) => !held.has(index));
  const named = missing.slice(0, maxMissing).join(", ");
  return missing.length > maxMissing ? `${named} and ${missing.length - maxMissing} more` : named;
}

/** How the shards of each sharded singleton are spread over the processes. */
export function ShardTable({ leases }: { readonly leases: readonly Lease[] }) {
  const rows = shardedOf(leases);
  if (rows.length === 0) return null;
  return (
    <section aria-labelledby="shards">
      <h2 id="shards">Shards</h2>
      <Table
        rows={rows}
        keyOf={({ singleton, of }) => `${singleton}/${of}`}
        isHighlighted={({ of, held }) => held.size < of}
        columns={[
          { name: "Singleton", className: "mono", cell: ({ singleton }) => singleton },
          { name: "Shards held", cell: ({ of, held }) => `${held.size} of ${of}` },
          {
            name: "Holders",
            cell: ({ held }) => labelsOf([...held.values()].map(({ label }) => ({ label: label ?? "" }))).join(", "),
          },
          { name: "Not held", cell: (row) => missingText(row) || <span className="muted">none</span> },
        ]}
      />
    </section>
  );
}
