import type { Page } from "./contract/store.ts";

/** Rows as a page; `more`: it was full. */
export function pageOf<T>(rows: readonly T[], more: boolean): Page<T> {
  const page = [...rows];
  // Not among the elements: two pages with the same rows are equal.
  if (more) Object.defineProperty(page, "more", { value: true });
  return page;
}

export function mapPage<T, U>(page: Page<T>, map: (row: T) => U): Page<U> {
  return pageOf(page.map(map), page.more === true);
}

/** Page after page of a list that is continued by the name of its last row. */
export async function allOf<T>(page: (above: string) => Promise<Page<T>>, nameOf: (row: T) => string): Promise<T[]> {
  const all: T[] = [];
  for (let above = ""; ; ) {
    const some = await page(above);
    all.push(...some);
    const last = some.at(-1);
    if (some.more !== true || last === undefined) return all;
    above = nameOf(last);
  }
}
