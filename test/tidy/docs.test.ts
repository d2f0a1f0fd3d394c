import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import { manual } from "../../src/cli/manual.ts";

const root = resolve(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");

/** Names in the first column of the tables below a heading. */
function tableNames(page: string, heading: string): string[] {
  const start = page.indexOf(heading);
  if (start < 0) throw new Error(`no heading ${heading}`);
  const end = page.indexOf("\n## ", start + heading.length);
  const section = page.slice(start, end < 0 ? undefined : end);
  return [...section.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name!);
}

function sourcesUnder(folder: string): string {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => read(join(folder, file)))
    .join("\n");
}

describe("docs and code name the same things, both ways", () => {
  const reference = read("docs/reference.md");

  it("the parser of this test sees what it should", () => {
    expect(tableNames("## H\n| `a` | x |\n## I\n| `b` | y |", "## H")).toEqual(["a"]);
  });

  it("commands", () => {
    expect(read("docs/cli.md")).toBe(manual(commands));
    const { bin } = JSON.parse(read("package.json")) as { bin: Record<string, string> };
    expect(tableNames(reference, "## Programs").sort()).toEqual(Object.keys(bin).sort());
  });

  it("environment variables", () => {
    const used = new Set(
      [
        ...`${["src", "testkit", "simulation"].map(sourcesUnder).join("\n")}\n${sourcesUnder("test/postgres")}`.matchAll(
          /\benv(?:\.|\[")(TAPE_\w+|WORKFLOW_TAPE_\w+|OPENSHELL_\w+|HOSTNAME|NO_COLOR)\b/g,
        ),
      ].map(([, name]) => name!),
    );
    expect(tableNames(reference, "## Environment").sort()).toEqual([...used].sort());
  });

  it("parameters of store URLs", () => {
    const page = read("docs/stores.md");
    const postgres = /const known = \[([^\]]*)\]/.exec(read("src/store/postgres/url.ts"))?.[1] ?? "";
    const sqlite = /const sqliteChoices = \{([^}]*)\}/.exec(read("src/host/open-store.ts"))?.[1] ?? "";
    expect(tableNames(page, "## PostgreSQL").sort()).toEqual(
      [...postgres.matchAll(/"(\w+)"/g)].map(([, key]) => key!).sort(),
    );
    const spanner = /const parameters = \{([\s\S]*?)\n\};/.exec(read("src/store/spanner/url.ts"))?.[1] ?? "";
    expect(tableNames(page, "## Spanner").sort()).toEqual(
      [...spanner.matchAll(/^ {2}(\w+): /gm)].map(([, key]) => key!).sort(),
    );
    expect(tableNames(page, "## SQLite").sort()).toEqual(
      [...sqlite.matchAll(/(\w+): \[/g)].map(([, key]) => key!).sort(),
    );
  });
});
