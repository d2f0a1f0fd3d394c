import { readFileSync } from "node:fs";
import { join } from "node:path";
import { adapters } from "../../tools/build/adapters.ts";
import { filesBelow } from "./published.ts";

interface PublishedManifest {
  readonly exports: object;
  readonly engines?: { readonly node: string };
  readonly scripts?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

export const manifestOf = (folder: string): PublishedManifest =>
  JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as PublishedManifest;

/** The names by which programs load the package. Those of adapters need their framework to be imported. */
export function entryPointsOf(unpacked: string, withAdapters: boolean): string[] {
  return Object.keys(manifestOf(unpacked).exports)
    .filter((name) => !name.endsWith(".json") && (withAdapters || !adapters.includes(name.slice(2))))
    .map((name) => name.replace(/^\./, "durable-tape"));
}

/** A program that loads each on a Node that reports another version, and prints the code and message of its error. */
export function loadOn(version: string, way: "import" | "require", names: readonly string[]): string {
  const load = way === "import" ? "await import" : "createRequire(import.meta.url)";
  return `
    import { createRequire } from "node:module";
    Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } });
    for (const name of ${JSON.stringify(names)}) {
      try {
        ${load}(name);
        console.log("loaded", name);
      } catch (error) {
        console.log(error.code, error.message);
      }
    }`;
}

/** What Node 18 or 20 lacks. An import of it by name fails before any line runs. */
const late = /"node:sqlite"|\{[^}]*\b(hash|getRandomValues|globSync|styleText|stripTypeScriptTypes)\b[^}]*\}/;

/** Static imports of built-in modules that fail on versions which should get the sentence. */
export function importedLate(unpacked: string): string[] {
  return filesBelow(join(unpacked, "dist"))
    .filter((path) => /^[\w-]+\.js$/.test(path))
    .flatMap(
      (path) => readFileSync(join(unpacked, "dist", path), "utf8").match(/^import [^;]*? from "node:[^"]+";$/gm) ?? [],
    )
    .filter((statement) => late.test(statement));
}
