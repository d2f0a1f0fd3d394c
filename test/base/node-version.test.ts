import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, it } from "vitest";
import { isFitNode, oldestNode } from "../../src/base/node-version.ts";
import { nodeFinding } from "../../src/cli/commands/doctor.ts";
import { warnOfOldNode } from "../../src/host/options.ts";

const bin = createRequire(import.meta.url)("../../bin/node-version.cjs") as Record<
  "canRun" | "isFit",
  (version: string) => boolean
>;

it("a Node with foreseeable hashes is not fit, a patched one of each line is", () => {
  const unfit = [
    "8.17.0",
    "20.20.2",
    "22.16.0",
    "22.22.1",
    "23.11.1",
    "24.0.0",
    "24.4.1",
    "24.14.0",
    "25.0.0",
    "25.8.1",
  ];
  for (const old of unfit) expect([isFitNode(old), bin.isFit(old)], old).toEqual([false, false]);
  for (const fit of ["22.22.2", "22.23.0", "24.14.1", "24.21.0", "25.8.2", "25.9.0", "26.0.0", "27.1.3"])
    expect([isFitNode(fit), bin.isFit(fit)], fit).toEqual([true, true]);
});

it("the library refuses only a Node that lacks what it uses", () => {
  for (const old of ["8.17.0", "18.20.8", "20.20.2", "21.7.3", "22.15.1", "23.11.1"])
    expect(bin.canRun(old), old).toBe(false);
  for (const able of ["22.16.0", "22.22.1", "24.0.0", "25.0.0", "26.0.0"]) expect(bin.canRun(able), able).toBe(true);
});

it("package.json and the template ask for the same", () => {
  for (const path of ["../../package.json", "../../template/package.json"]) {
    const text = readFileSync(new URL(path, import.meta.url), "utf8");
    expect((JSON.parse(text) as { engines: { node: string } }).engines.node).toBe(
      `^${oldestNode} || ^24.14.1 || >=25.8.2`,
    );
  }
});

it("an app on an old one says so with code and next step, and doctor names it", () => {
  const lines: unknown[] = [];
  warnOfOldNode((...line) => void lines.push(line), "24.4.0");
  expect(lines).toMatchObject([
    ["warn", "node.outdated", { code: "TAPE_NODE_OUTDATED", next: expect.stringContaining("24.14.1") as string }],
  ]);
  warnOfOldNode((...line) => void lines.push(line));
  expect(lines).toHaveLength(1);
  expect(nodeFinding("24.4.0")).toMatchObject({ state: "fail", next: expect.stringContaining("TAPE_NODE_") as string });
  expect(nodeFinding()).toMatchObject({ state: "ok" });
});
