import type { Page } from "./contract/store.ts";

/** Rows as a page. `more`: the page was full. */
export function pageOf<T>(rows: readonly T[], more: boolean): Page<T> {
  const page = [...rows];
  // Not enumerable, so that two pages with the same rows are equal.
  if (more) Object.defineProperty(page, "more", { value: true });
  return page;
}

export function mapPage<T, U>(page: Page<T>, map: (row: T) => U): Page<U> {
  return pageOf(page.map(map), page.more === true);
}
