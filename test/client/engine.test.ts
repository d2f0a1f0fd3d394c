import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { reachThrough, tenant } from "../engine/stage.ts";
import { remoteOn } from "./stage.ts";

/** The author's tests of the engine, unchanged, with a server between the engine and its store. */
const folder = join(import.meta.dirname, "../engine");
/** They bring stores of their own: what they say is about PostgreSQL and SQLite themselves. */
const elsewhere = ["commits.test.ts", "parked.test.ts", "postgres.test.ts", "reassigned.test.ts"];
const files = readdirSync(folder).filter((file) => file.endsWith(".test.ts") && !elsewhere.includes(file));

reachThrough((store) => remoteOn(store, tenant), 12);
for (const file of files) await import(/* @vite-ignore */ join(folder, file));

it("finds them all", () => {
  expect(files).toContain("replay.test.ts");
  expect(files.length).toBeGreaterThan(12);
});
