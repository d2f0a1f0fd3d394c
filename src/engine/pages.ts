import type { Page } from "../store/contract.ts";
import type { Note } from "./history.ts";

/** Page after page, until one is not full. */
export async function readAll<R extends Note>(page: (from: number) => Promise<Page<R>>): Promise<R[]> {
  const all: R[] = [];
  for (;;) {
    const some = await page(all.length + 1);
    all.push(...some);
    if (some.more !== true) return all;
  }
}
