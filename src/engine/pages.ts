import type { Note } from "./history.ts";

/** Page after page, until one is not full. */
export async function readAll(pageRows: number, page: (from: number) => Promise<Note[]>): Promise<Note[]> {
  const all: Note[] = [];
  for (;;) {
    const some = await page(all.length + 1);
    all.push(...some);
    if (some.length < pageRows) return all;
  }
}
