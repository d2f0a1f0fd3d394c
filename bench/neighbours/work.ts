import { setImmediate as turn } from "node:timers/promises";
import { workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";

export type Role = "worker" | "caller";

export type Order =
  | { readonly do: "measure"; readonly ms: number }
  | { readonly do: "start"; readonly runs: number; readonly served: boolean }
  | { readonly do: "read"; readonly readers: number }
  | { readonly do: "stop" }
  | { readonly do: "close" };

export type Report =
  | { readonly say: "open" }
  | { readonly say: "measured"; readonly latencies: number[] }
  | { readonly say: "done"; readonly records?: number }
  | { readonly say: "failed"; readonly error: string };

export const short = workflow("short", async (tape, input: number) => {
  for (let k = 0; k < 3; k++) await tape.step(`step-${k}`, () => input + k);
  return input;
});

/** Records of one walk through the feed. */
export async function followed(store: Store, tenant: string, stopped: () => boolean): Promise<number> {
  let records = 0;
  for (let cursor: string | undefined; !stopped(); ) {
    const page = await store.read.feed(cursor, undefined, tenant);
    records += page.records.length;
    cursor = page.cursor;
    await turn(); // an embedded store answers within the turn: nothing else would get one
    if (page.more !== true && page.records.length === 0) break;
  }
  return records;
}
