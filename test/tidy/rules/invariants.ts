import type { SourceFile } from "../files.ts";
import { stringsOf } from "../syntax.ts";

/** ARCHITECTURE.md names the tests of each invariant, whose titles carry its number: the two lists are equal. */
export function invariantTests(page: string, files: SourceFile[]): string[] {
  const named = new Map<string, Set<string>>();
  for (const [, id, cells] of page.matchAll(/^\| (INV-\d+) \|(.*)$/gm)) {
    named.set(id!, new Set([...cells!.matchAll(/\]\(([^)]+)\)/g)].map(([, path]) => path!)));
  }
  const tested = new Map<string, Set<string>>();
  for (const file of files) {
    for (const { text } of stringsOf(file)) {
      for (const [, id] of text.matchAll(/\[(INV-\d+)\]/g))
        tested.set(id!, (tested.get(id!) ?? new Set()).add(file.path));
    }
  }
  const findings: string[] = [];
  for (const [id, paths] of named) {
    if (paths.size === 0) findings.push(`${id} names no test in ARCHITECTURE.md`);
    for (const path of paths) {
      if (!tested.get(id)?.has(path)) findings.push(`${id} names ${path}, where no title has [${id}]`);
    }
  }
  for (const [id, paths] of tested) {
    for (const path of paths) {
      if (!named.get(id)?.has(path)) findings.push(`${path} tests [${id}], but ARCHITECTURE.md does not name it there`);
    }
  }
  return findings;
}
