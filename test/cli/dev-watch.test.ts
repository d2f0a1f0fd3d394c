import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { watchSources } from "../../src/cli/dev/watch.ts";
import { temporaryFolder } from "./stage.ts";

/** Watches a folder and lists every reported change, before bursts are merged. */
async function watched(): Promise<{ root: string; write: (name: string) => void; counted: () => string[] }> {
  const root = await temporaryFolder();
  for (const folder of ["app/parts", "app/node_modules/x", "app/.cache"])
    mkdirSync(join(root, folder), { recursive: true });
  const timers: (() => void)[] = [];
  const names: string[] = [];
  const after = (_ms: number, fn: () => void) => {
    timers.push(fn);
    return () => {};
  };
  const clock = { ...systemClock, after };
  const changed = (name: string) => void names.push(name);
  onTestFinished(watchSources({ folder: join(root, "app"), file: join(root, "tape.yaml"), clock, changed }));
  return {
    root,
    write: (name) => writeFileSync(join(root, name), "x"),
    counted: () => {
      for (const fire of timers.splice(0)) fire();
      return [...new Set(names)];
    },
  };
}

it("reports changed code, also in new folders, and a changed configuration", async () => {
  const { root, write, counted } = await watched();
  for (const name of ["app/a.ts", "app/parts/b.mjs", "tape.yaml"]) write(name);
  await expect.poll(() => counted().toSorted()).toEqual(["a.ts", "b.mjs", "tape.yaml"]);
  mkdirSync(join(root, "app/later"));
  await expect
    .poll(() => {
      write("app/later/c.tsx"); // repeatedly, because a new folder is watched only a moment later
      return counted();
    })
    .toContain("c.tsx");
});

it("ignores data, installed packages, and code outside the folder", async () => {
  const { write, counted } = await watched();
  for (const name of ["app/data.json", "app/tape.db", "app/node_modules/x/i.js", "app/.cache/i.js", "other.ts"])
    write(name);
  for (const name of ["app/last.ts", "tape.yaml"]) write(name); // each watcher reports its events in order
  await expect.poll(() => counted().toSorted()).toEqual(["last.ts", "tape.yaml"]);
});

it("reports a burst as one change", async () => {
  const root = await temporaryFolder();
  const changes: string[] = [];
  onTestFinished(
    watchSources({ folder: root, file: undefined, clock: systemClock, changed: (name) => void changes.push(name) }),
  );
  for (let k = 0; k < 20; k++) writeFileSync(join(root, `f${k}.ts`), "x");
  await expect.poll(() => changes.length).toBeGreaterThan(0);
  expect(changes).toEqual(["f19.ts"]);
});
