import { describe, expect, it } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { inlined } from "../../tools/build/inlined.ts";
import { readFiles, repositoryPaths, type SourceFile } from "./files.ts";
import {
  durationsRefused,
  importCycles,
  importOrder,
  publishedImports,
  reactorsComposedOnce,
  reexportsOnly,
} from "./rules/layers.ts";
import { consoleOnlyInCli, seams } from "./rules/seams.ts";
import { emptyNames, typeEscapes, unfinishedMarks, wordsOf } from "./rules/vocabulary.ts";

const sources = readFiles(repositoryPaths().filter((path) => /^(src|testkit|simulation)\/.*\.(ts|sql)$/.test(path)));
const code = sources.filter(({ path }) => path.endsWith(".ts"));
const at = (path: string, text: string): SourceFile => ({ path, text });
const count = (rule: (files: SourceFile[]) => string[], ...files: SourceFile[]) => rule(files).length;

it("there is code to judge", () => {
  expect(code.length).toBeGreaterThan(0);
});

describe("import order", () => {
  it("holds", () => expect(importOrder(code)).toEqual([]));

  it.each([
    ["upwards", "src/model/a.ts", 'import { b } from "../engine/b.ts";'],
    ["upwards, types only", "src/model/a.ts", 'import type { B } from "../engine/b.ts";'],
    ["upwards, re-exported", "src/model/a.ts", 'export * from "../engine/b.ts";'],
    ["upwards, at run time", "src/model/a.ts", 'await import("../engine/b.ts");'],
    ["upwards, inside a type", "src/model/a.ts", 'let b: import("../engine/b.ts").B;'],
    ["sideways", "src/sdk/a.ts", 'import "../protocol/b.ts";'],
    ["out of src", "src/cli/a.ts", 'import "../../test/b.ts";'],
    ["of the test kit from src", "src/cli/a.ts", 'import "../../testkit/b.ts";'],
    ["of the simulation from the test kit", "testkit/a.ts", 'import "../simulation/b.ts";'],
    ["upwards within the engine", "src/engine/core/a.ts", 'import "../drive/b.ts";'],
    ["of the engine's files from its folders", "src/engine/drive/a.ts", 'import "../b.ts";'],
    ["a concrete store from the engine", "src/engine/a.ts", 'import "../store/sqlite/b.ts";'],
    ["a concrete store from the test kit", "testkit/a.ts", 'import "../src/store/sqlite/b.ts";'],
    ["one concrete store from another", "src/store/sqlite/a.ts", 'import "../postgres/b.ts";'],
    ["a concrete store from the contract", "src/store/a.ts", 'import "./sqlite/b.ts";'],
    ["from a folder without a place", "src/tools/a.ts", "export const a = 1;"],
    ["from no folder at all", "src/a.ts", "export const a = 1;"],
  ])("refuses an import %s", (_, path, text) => expect(count(importOrder, at(path, text))).toBe(1));

  it("lets a folder import from below and from itself, and the host from the stores", () => {
    const fine = [
      at("src/engine/a.ts", 'import { b } from "../store/contract.ts"; import { c } from "./c.ts"; import "node:fs";'),
      at("src/store/sqlite/a.ts", 'import "../contract.ts"; import "./b.ts";'),
      at("src/host/a.ts", 'import "../store/postgres/b.ts";'),
      at("src/engine/run-driver.ts", 'import "./drive/b.ts";'),
      at("testkit/kit/a.ts", 'import "../../src/host/b.ts"; import "../clock.ts";'),
      at("simulation/a.ts", 'import "../testkit/clock.ts"; import "../src/host/b.ts";'),
    ];
    expect(importOrder(fine)).toEqual([]);
  });

  it("src imports only what is published with it", () => {
    const peers = "peerDependencies" in manifest ? Object.keys(manifest.peerDependencies as object) : [];
    expect(publishedImports(code, [...Object.keys(manifest.dependencies), ...peers, ...inlined])).toEqual([]);
    const sample = 'import "vitest"; import "fs"; import "node:fs"; import "pg/lib/x.js"; import "@a/b/c";';
    expect(publishedImports([at("src/cli/a.ts", sample)], ["pg", "@a/b"])).toHaveLength(2);
    const types = 'import type { IJob } from "kubernetes-models/batch/v1/Job";';
    const value = types.replace("type ", "");
    expect(publishedImports([at("src/deploy/a.ts", types)], [])).toEqual([]);
    expect(publishedImports([at("src/deploy/a.ts", value), at("src/cli/a.ts", types)], [])).toHaveLength(2);
  });

  it("no file imports itself by way of others", () => {
    expect(importCycles(code)).toEqual([]);
    const cycle = [
      at("src/model/a.ts", 'import "./b.ts";'),
      at("src/model/b.ts", 'import type { C } from "./c.ts";'),
      at("src/model/c.ts", 'export * from "./a.ts";'),
    ];
    expect(importCycles(cycle)).toHaveLength(1);
    expect(importCycles(cycle.slice(0, 2))).toEqual([]);
  });

  it("reactors are composed in one file", () => {
    expect(reactorsComposedOnce(code)).toEqual([]);
    const found = (path: string, text: string) => count(reactorsComposedOnce, at(path, text));
    const factory = 'import { timers } from "../reactor/timers.ts";';
    expect(found("src/host/worker.ts", factory)).toBe(1);
    expect(found("src/host/worker.ts", 'import { timers as fire } from "../reactor/timers.ts";')).toBe(1);
    expect(found("src/host/worker.ts", 'import * as timing from "../reactor/timers.ts";')).toBe(1);
    expect(found("src/host/worker.ts", 'await import("../reactor/outbox.ts");')).toBe(1);
    expect(found("src/cli/reactors/a.ts", 'import { ReactorLoop } from "../../reactor/loop.ts";')).toBe(1);
    expect(found("src/host/reactors.ts", factory)).toBe(0);
    expect(found("src/host/worker.ts", 'import type { ReactorStats } from "../reactor/loop.ts";')).toBe(0);
    expect(found("src/host/worker.ts", 'import { timers } from "./timers.ts";')).toBe(0);
  });

  it("durations are parsed where nonsense is refused", () => {
    expect(durationsRefused(code)).toEqual([]);
    const found = (path: string, text: string) => count(durationsRefused, at(path, text));
    expect(found("src/host/a.ts", 'import { durationMs } from "../base/duration.ts";')).toBe(1);
    expect(found("src/host/a.ts", 'import type { Duration } from "../base/duration.ts";')).toBe(0);
    expect(found("src/sdk/validate.ts", 'import { durationMs } from "../base/duration.ts";')).toBe(0);
  });

  it("src/exports and the test kit's index hold re-exports only", () => {
    expect(reexportsOnly(code)).toEqual([]);
    const index = (text: string) => count(reexportsOnly, at("src/exports/index.ts", text));
    expect(index('export { a } from "../model/a.ts";\nexport type * from "../model/b.ts";')).toBe(0);
    expect(index("export const a = 1;")).toBe(1);
    expect(index('import { a } from "../model/a.ts";\nexport { a };')).toBe(1);
  });
});

describe("seams", () => {
  it("time and chance are parameters outside src/base", () => expect(seams(code)).toEqual([]));

  it.each([
    "Date.now()",
    "const now = Date.now;",
    'Date["now"]()',
    "new Date()",
    "new globalThis.Date()",
    "Date()",
    "Math.random()",
    "setTimeout(f, 1)",
    "globalThis.setTimeout(f, 1)",
    "setInterval(f, 1)",
    "setImmediate(f)",
    "const wait = { setTimeout };",
    "performance.now()",
    "process.hrtime.bigint()",
    "AbortSignal.timeout(1)",
    "crypto.randomUUID()",
    "globalThis.crypto.randomUUID()",
    'import { randomUUID } from "node:crypto";',
    'import * as c from "node:crypto"; c.randomBytes(1);',
    'import { setTimeout } from "node:timers/promises";',
    'import { performance } from "node:perf_hooks";',
  ])("refuses %s", (text) => {
    expect(count(seams, at("src/engine/a.ts", text))).toBe(1);
    expect(count(seams, at("src/base/a.ts", text))).toBe(0);
  });

  it.each([
    "new Date(0)",
    "queueMicrotask(f)",
    "clock.setTimeout(f)",
    "clock.now()",
    "type T = { setTimeout: number; now(): Date };",
    "const wait = { setTimeout: f };",
    'import { createHash } from "node:crypto"; createHash("sha256");',
    "// Date.now() is for others\nconst text = 'Date.now()';",
  ])("allows %s", (text) => expect(seams([at("src/engine/a.ts", text)])).toEqual([]));

  it("only the command line prints", () => {
    expect(consoleOnlyInCli(code)).toEqual([]);
    expect(count(consoleOnlyInCli, at("src/base/a.ts", "console.log(1)"))).toBe(1);
    expect(count(consoleOnlyInCli, at("src/cli/a.ts", "console.log(1)"))).toBe(0);
    expect(count(consoleOnlyInCli, at("src/base/a.ts", "const a = { console: 1 }; a.console;"))).toBe(0);
  });
});

describe("vocabulary", () => {
  it("names say something", () => expect(emptyNames(sources)).toEqual([]));

  it.each([
    ["src/lease/lease-manager.ts", ""],
    ["src/base/utils.ts", ""],
    ["src/lease/a.ts", "class LeaseManager {}"],
    ["src/lease/a.ts", "const sqlHelper = 1;"],
    ["src/lease/a.ts", "interface A { common_part: string }"],
    ["src/lease/a.ts", "class A { #misc = 1; }"],
    ["src/store/sqlite/sql/a.sql", "select manager_id from lease"],
    ["src/lease/a.ts", "const epoch = 1;"],
  ])("refuses %s %s", (path, text) => expect(count(emptyNames, at(path, text))).toBe(1));

  it.each([
    ["src/lease/a.ts", 'import { inspect } from "node:util"; // no helper here'],
    ["src/lease/a.ts", "const utility = 1, commonality = 2;"],
    ["src/lease/a.ts", "const storeEpoch = 1;"],
    ["src/lease/a.ts", "// the store epoch\nconst epoch = 1;"],
    ["src/store/sqlite/sql/a.sql", "-- a common table expression\nselect 'manager'"],
  ])("allows %s %s", (path, text) => expect(emptyNames([at(path, text)])).toEqual([]));

  it("splits names into words", () => {
    expect(wordsOf("HTTPServer2_leaseManager")).toEqual(["http", "server", "2", "lease", "manager"]);
  });

  it("nothing is left for later", () => {
    expect(unfinishedMarks(sources)).toEqual([]);
    for (const mark of ["TODO", "FIXME", "XXX", "HACK"]) {
      expect(count(unfinishedMarks, at("src/base/a.ts", `const a = 1; // ${mark}: b`))).toBe(1);
    }
    expect(unfinishedMarks([at("src/base/a.ts", "const todos = 1;")])).toEqual([]);
  });

  it("types are not switched off", () => {
    expect(typeEscapes(code)).toEqual([]);
    for (const text of [
      "let a: any;",
      "let a = b as any;",
      "let a: Promise<any[]>;",
      "// @ts-ignore",
      "/* @ts-expect-error */",
    ]) {
      expect(count(typeEscapes, at("src/base/a.ts", text))).toBe(1);
    }
    expect(typeEscapes([at("src/base/a.ts", 'const any = "any"; // any')])).toEqual([]);
  });
});
