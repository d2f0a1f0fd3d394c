import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { program, temporaryFolder } from "./stage.ts";

const tenant = "default";
const claimant = { owner: "worker/1", label: "worker", reactor: "recovery", ttlMs: 3_600_000 };
const operator = ["--by", "ada", "--reason", "drill"];

async function scene(): Promise<{ store: Store; tape: (...args: string[]) => ReturnType<typeof program> }> {
  const url = `sqlite:${join(await temporaryFolder(), "tape.db")}`;
  const store = await openStore(url);
  onTestFinished(() => store.close());
  for (const build of ["v1", "v2"]) await store.intake.reportBuild(tenant, build, ["quote"]);
  const spec = { id: "q-1", workflow: "quote", input: 1, build: "v1" };
  const [made] = await store.intake.createRuns(tenant, [spec], { ...claimant, nonce: 1n });
  if (made?.ok !== true) throw new Error("the run was not created");
  return { store, tape: (...args) => program(...args, "--store", url) };
}

describe("builds on the command line", () => {
  it("lists live runs and processes, and answers a pre-stop hook", async () => {
    const { tape } = await scene();
    const listed = await tape("builds", "-o", "json");
    const byName = (a: { build: string }, b: { build: string }): number => (a.build < b.build ? -1 : 1);
    expect((JSON.parse(listed.stdout) as { build: string }[]).sort(byName)).toMatchObject([
      { build: "v1", live: 1, processes: 0, current: false },
      { build: "v2", live: 0, processes: 0, current: false },
    ]);
    const waiting = await tape("builds", "drained", "v1");
    expect([waiting.code, waiting.stdout.trim()]).toEqual([3, "1 run of v1 not ended"]);
    expect((await tape("builds", "drained", "v2", "--wait")).code).toBe(0);
  });

  it("makes a build current, and leaves a run alone that a process drives", async () => {
    const { tape, store } = await scene();
    expect((await tape("builds", "current", "v2", ...operator)).stdout.trim()).toBe("v2 is current");
    expect((await store.read.builds(tenant, { build: "v2" }))[0]?.current).toBe(true);
    const moved = await tape("builds", "move", "--from", "v1", "--to", "v2", ...operator, "-o", "json");
    expect([moved.code, JSON.parse(moved.stdout)]).toMatchObject([3, [{ run: "q-1", result: "held" }]]);
    expect((await tape("builds", "move", "--from", "v1", ...operator)).code).toBe(2);
  });
});
