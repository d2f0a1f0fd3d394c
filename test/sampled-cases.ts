import { afterEach, beforeEach, describe, it } from "vitest";
import type { TestRunner } from "../testkit/conformance/index.ts";
import { sampleOf } from "./sample.ts";

/** Runs one case in `stride` of each group, and at least one; every day others. */
export function sampled(stride: number): TestRunner {
  let cases: Parameters<TestRunner["it"]>[] = [];
  const groups: TestRunner["describe"] = (name, body) => {
    describe(name, () => {
      const around = cases;
      cases = [];
      body();
      for (const sample of sampleOf(cases, stride)) it(...sample);
      cases = around;
    });
  };
  return { describe: groups, it: (...entry) => void cases.push(entry), beforeEach, afterEach };
}
