import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterEach, expect, it } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import { ask, type Stage, stage } from "./stage.ts";

/** Texts for people name fields, calls and options: each must exist. */
const root = resolve(import.meta.dirname, "../..");
const page = (name: string): string => readFileSync(join(root, "docs", name), "utf8");
const sources = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => readFileSync(join(root, folder, name), "utf8"));

let current: Stage | undefined;
afterEach(() => current?.close());

it("has the fields of /healthz that the docs name", async () => {
  current = await stage();
  const health = (await ask(current.server.exchange, "GET", "/healthz")).json as Record<string, unknown>;
  const named = readdirSync(join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .flatMap((name) => [...page(name).matchAll(/((?:`\w+`(?:, | and )?)+) in `\/healthz`/g)])
    .flatMap(([, fields]) => [...fields!.matchAll(/`(\w+)`/g)].map(([, field]) => field!));
  expect(named.length).toBeGreaterThan(1);
  expect(Object.keys(health)).toEqual(expect.arrayContaining([...new Set(named)]));
});

it("has the app methods that the dashboard names", async () => {
  await using app = await Tape.open({ store: "memory:", runner: createRunner({ workflows: [] }) });
  const named = sources("dashboard/src").flatMap((text) => [...text.matchAll(/\bapp\.(\w+)(?:\.(\w+))?\(/g)]);
  const missing = named.filter(([, first, second]) => {
    const found = (app as unknown as Record<string, Record<string, unknown>>)[first!];
    return typeof (second === undefined ? found : found?.[second]) !== "function";
  });
  expect(missing.map(([text]) => text)).toEqual([]);
});

it("has the timers and the --config default that the docs name", () => {
  expect(page("reactors.md")).toMatch(/timers \([^)]*redrive/);
  for (const { options = {} } of commands) expect(options.config?.help ?? "").not.toContain("above");
});
