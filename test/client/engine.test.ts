import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { reachThrough, tenant } from "../engine/stage.ts";
import { sampleDay, sampleOf } from "../sample.ts";
import { remoteOn } from "./stage.ts";

/**
 * The author's tests of the engine, unchanged, with a server between the engine and its store: one file in two, another
 * half every day. TAPE_TEST_EVERY_BOUNDARY=1 runs them all.
 */
const folder = join(import.meta.dirname, "../engine");
/** It brings stores of its own: what it says is about PostgreSQL and SQLite themselves. */
const elsewhere = ["commits.test.ts"];
/** The others open no store through the stage: a server would not be between. */
const onStage = (file: string): boolean => readFileSync(join(folder, file), "utf8").includes('from "./stage.ts"');
const files = readdirSync(folder).filter(
  (file) => file.endsWith(".test.ts") && !elsewhere.includes(file) && onStage(file),
);

const sampled = sampleOf(files, 2);

reachThrough((store) => remoteOn(store, tenant), 12);
for (const file of sampled) await import(/* @vite-ignore */ join(folder, file));

it(`finds them all (sample of ${sampleDay})`, () => {
  expect(files).toContain("replay.test.ts");
  expect(files.length).toBeGreaterThan(28);
  expect(sampled.length).toBeGreaterThanOrEqual(Math.floor(files.length / 2));
});
