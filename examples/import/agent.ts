// In your own project: from "durable-tape".
import { createRunner, DefiniteFailure, effect, type Runner, workflow } from "../../src/exports/index.ts";
import { addOnce, type Ledger, memoryLedger } from "../ledger.ts";

export interface Item {
  readonly sku: string;
  readonly price: number;
}

export interface World {
  /** Deduplicates by key. */
  readonly catalogue: { put(key: string, item: Item): Promise<void> };
}

/** Imports many items: one child run per chunk, the items of a chunk in parallel. A bad item is reported, not fatal. */
export function importOn({ catalogue }: World) {
  const put = effect("catalogue.put", (item: Item, fx) => catalogue.put(fx.key, item), { semantics: "idempotent" });

  const chunk = workflow("import.chunk", async (tape, items: readonly Item[]) => {
    let done = 0;
    const outcomes = await Promise.all(
      items.map(async (item) => {
        const outcome = await tape.attempt(put.with(item));
        tape.progress(`${++done} of ${items.length}`);
        return outcome.status === "confirmed" ? [] : [item.sku];
      }),
    );
    return { rejected: outcomes.flat() };
  });

  const importAll = workflow("import", async (tape, input: { items: readonly Item[]; chunkSize?: number }) => {
    const { items, chunkSize = 10 } = input;
    const chunks = Array.from({ length: Math.ceil(items.length / chunkSize) }, (_, k) =>
      items.slice(k * chunkSize, (k + 1) * chunkSize),
    );
    const children = await Promise.all(chunks.map((part) => tape.spawn(chunk, part)));
    const rejected: string[] = [];
    for (const [k, child] of children.entries()) {
      rejected.push(...(await child.result()).rejected);
      tape.progress(`${k + 1} of ${children.length} chunks`);
    }
    return { imported: items.length - rejected.length, rejected };
  });

  return { importAll, chunk, runner: createRunner({ workflows: [importAll, chunk], effects: [put] }) };
}

export const itemsOf = (count: number): Item[] =>
  Array.from({ length: count }, (_, k) => ({ sku: `sku-${k}`, price: k === 3 ? -1 : k }));

export function worldOn(ledger: Ledger): World {
  return {
    catalogue: {
      async put(key, { sku, price }) {
        if (price < 0) throw new DefiniteFailure(`${sku} has a negative price`);
        addOnce(ledger, { kind: "put", subject: sku, key });
      },
    },
  };
}

export const buildRunner = (world: World = worldOn(memoryLedger())): Runner => importOn(world).runner;
