import { encode } from "../src/base/codec.ts";
import type { Term } from "../src/model/lease.ts";
import type { NewRecord } from "../src/model/records.ts";
import type { Store } from "../src/store/contract/store.ts";

/** Records of one journal: one to create it, eleven appended. */
export const journalLength = 12;

export const stepRecord: NewRecord = {
  kind: "step.done",
  data: { pos: 3, name: "step-3", value: { ok: true, text: "x".repeat(90), at: 1_763_236_800_000 } },
};
export const stepBody = encode({ v: 1, ...stepRecord.data });

export const say = (text: string): void => void process.stderr.write(`${text}\n`);

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

let created = 0;
let nonce = 1n;

export async function runPool(store: Store, count: number): Promise<Term[]> {
  const pool: Term[] = [];
  while (pool.length < count) {
    const some = Math.min(500, count - pool.length);
    const specs = Array.from({ length: some }, () => ({
      id: `bench-${process.pid}-${++created}`,
      workflow: "w",
      input: 1,
    }));
    const first = { owner: "bench", label: "bench", reactor: "agent", ttlMs: 600_000, nonce: ++nonce };
    for (const verdict of await store.intake.createRuns("bench", specs, first)) {
      if (!verdict.ok) throw verdict.error;
      pool.push(verdict.term!);
    }
  }
  return pool;
}

/** `w` writers, each waiting for its commit before the next append. Appends a second. */
export async function appendFor(store: Store, pool: Term[], w: number, ms: number): Promise<number> {
  const started = performance.now();
  const until = started + ms;
  let appends = 0;
  await Promise.all(
    Array.from({ length: w }, async () => {
      while (performance.now() < until) {
        const term = pool.pop();
        if (term === undefined) return; // measured over the time it took
        for (let after = 1; after < journalLength; after++) {
          await store.fenced.append(term.fence, { after, records: [stepRecord] });
          appends++;
        }
      }
    }),
  );
  return (appends * 1000) / (performance.now() - started);
}
