// Where each bug was found when somebody last looked. `node test/planted/hunt.ts` looks again, and writes it down.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bugs } from "./bugs/index.ts";
import { Workshop } from "./workshop.ts";

const file = join(import.meta.dirname, "last-found.json");

/** The promise: every bug is found in one of these. */
export const promised: readonly number[] = Array.from({ length: 500 }, (_, k) => k + 1);

/** By the names of bugs. */
export const lastFound = (): Readonly<Record<string, number>> => JSON.parse(readFileSync(file, "utf8"));

async function hunt(): Promise<void> {
  const shop = new Workshop();
  const found: Record<string, number> = {};
  for (const { name, patches, tellers, kind, within } of bugs) {
    const played = await shop.play(patches, { seeds: promised.slice(0, within), tellers, kind });
    if (played.found === undefined) console.error(`${name}: not found in ${within} seeds`);
    else found[name] = played.found.seed;
  }
  shop.close();
  writeFileSync(file, `${JSON.stringify(found, null, 2)}\n`);
}

if (import.meta.main) await hunt();
