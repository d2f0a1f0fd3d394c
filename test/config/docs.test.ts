import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { usage } from "../../src/cli/reactors/options.ts";
import { leaves, variableOf } from "../../src/config/leaves.ts";
import { builtIns } from "../../src/config/schema.ts";

const root = resolve(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const cells = (page: string): string[][] =>
  [...page.matchAll(/^\| (`.*) \|$/gm)].map(([, row]) => row!.split(" | ").map((cell) => cell.trim()));

describe("docs/configuration.md", () => {
  const described = leaves().map((leaf) => {
    const path = leaf.path.replace(/^(tape\.reactors|tape\.events\.sinks)\.[^.]+/, "$1.NAME");
    const fallback = leaf.fallback === undefined ? "" : `\`${leaf.fallback}\``;
    const [, section, name] = leaf.path.split(".");
    return {
      of: section === "deploy" ? section : name,
      row: [`\`${path}\``, `\`${variableOf(path)}\``, fallback, leaf.description],
    };
  });
  const settings = described.filter(({ of }) => of !== "deploy");
  const listed = settings.filter(({ of, row }) => !row[0]!.includes(".NAME.") || of === "recovery" || of === "sinks");
  const [page, deployment] = read("docs/configuration.md").split("\n## Deployment\n");

  it("lists exactly the settings, with variable, default and meaning", () => {
    expect(cells(page!)).toEqual(listed.map(({ row }) => row));
  });

  it("lists exactly the settings of a deployment, which no variable sets", () => {
    const rows = leaves().flatMap(({ path, fallback, description }) =>
      path.startsWith("tape.deploy.")
        ? [[`\`${path.replaceAll("*", "NAME")}\``, fallback === undefined ? "" : `\`${fallback}\``, description]]
        : [],
    );
    expect(rows.every(([, , description]) => description !== "")).toBe(true);
    expect(cells(deployment!)).toEqual(rows);
  });

  it("describes settings that are the same for all five reactors", () => {
    const rowsOf = (name: string) => described.filter(({ of }) => of === name).map(({ row }) => row);
    for (const name of builtIns) expect(rowsOf(name)).toEqual(rowsOf("recovery"));
    const custom = rowsOf("*").filter(([path]) => !/\.(handler|interval_ms)`$/.test(path!));
    expect(custom).toEqual(rowsOf("recovery").filter(([path]) => !/\.(handler|interval_ms)`$/.test(path!)));
  });
});

describe("docs/reactors.md", () => {
  const page = read("docs/reactors.md");
  const section = (heading: string): string => page.split(`\n## ${heading}\n`)[1]!.split("\n## ")[0]!;

  it("lists exactly the flags of tape-reactors", () => {
    const inUsage = [...usage.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, flag]) => flag);
    const more = [...usage.matchAll(/, (--[a-z-]+)/g)].map(([, flag]) => flag);
    const inDocs = cells(section("tape-reactors")).map(([flag]) => flag!.replaceAll("`", ""));
    expect(inDocs).toEqual([...inUsage, ...more]);
  });

  it("lists exactly the events that reactors log", () => {
    const folders = ["src/reactor", "src/cli/reactors", "src/engine/item", "src/operator"];
    const sources = folders.flatMap((folder) =>
      readdirSync(join(root, folder)).map((file) => read(join(folder, file))),
    );
    sources.push(read("src/host/reactors.ts"));
    const logged = sources.flatMap((text) =>
      [...text.matchAll(/log\("(\w+)", "([\w.]+)"/g)].map(([, , event]) => event!),
    );
    const inDocs = cells(section("Log events")).map(([event]) => event!.replaceAll("`", ""));
    expect(inDocs.toSorted()).toEqual([...new Set(logged)].toSorted());
  });
});
