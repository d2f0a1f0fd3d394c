import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { reachThrough, tenant } from "../engine/stage.ts";
import { remoteOn } from "./stage.ts";

/** The author's tests of the engine, unchanged, with a server between the engine and its store. */
const folder = join(import.meta.dirname, "../engine");
/** It brings stores of its own: what it says is about PostgreSQL and SQLite themselves. */
const elsewhere = ["commits.test.ts"];
/** The others open no store through the stage: a server would not be between. */
const onStage = (file: string): boolean => readFileSync(join(folder, file), "utf8").includes('from "./stage.ts"');
const files = readdirSync(folder).filter(
  (file) => file.endsWith(".test.ts") && !elsewhere.includes(file) && onStage(file),
);

reachThrough((store) => remoteOn(store, tenant), 12);
for (const file of files) await import(/* @vite-ignore */ join(folder, file));

it("finds them all", () => {
  expect(files).toContain("replay.test.ts");
  expect(files.length).toBeGreaterThan(28);
});
