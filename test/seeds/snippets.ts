import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dirname, "fixtures");

/** A snippet of the seed documents, byte for byte. */
export const fixture = (name: string): string => readFileSync(join(folder, name), "utf8");

/** Short snippets within sentences, by their name. */
export const inline: ReadonlyMap<string, string> = new Map(
  fixture("inline.txt")
    .trimEnd()
    .split("\n")
    .map((line) => line.split("\t", 2) as [string, string]),
);

/** The names of all snippets. */
export const names: readonly string[] = [
  ...readdirSync(folder).filter((name) => name !== "inline.txt"),
  ...inline.keys(),
];

/** Snippets that test/seeds/written.test.ts executes byte for byte. */
export const executed = ["leases.yaml", "reactors.yaml", "tape-dev.sh", "tape-reactors.sh", "tape-deploy.sh"];
