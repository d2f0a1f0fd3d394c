// `node test/planted/find-seeds.ts` searches the first seed that detects each planted bug and writes last-found.json.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bugs } from "./bugs/index.ts";
import { PatchedCopy } from "./patched-copy.ts";

const file = join(import.meta.dirname, "last-found.json");

/** Every planted bug must be detected by one of these seeds. */
export const promised: readonly number[] = Array.from({ length: 500 }, (_, k) => k + 1);

/** The seed that last detected each bug, by the bug's name. */
export const lastFound = (): Readonly<Record<string, number>> => JSON.parse(readFileSync(file, "utf8"));

async function findSeeds(): Promise<void> {
  const copy = new PatchedCopy();
  const found: Record<string, number> = {};
  for (const { name, patches, detectedBy, kind, within } of bugs) {
    const result = await copy.run(patches, { seeds: promised.slice(0, within), detectedBy, kind });
    if (result.found === undefined) console.error(`${name}: not detected within ${within} seeds`);
    else found[name] = result.found.seed;
  }
  copy.close();
  writeFileSync(file, `${JSON.stringify(found, null, 2)}\n`);
}

if (import.meta.main) await findSeeds();
