import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { queue } from "../../src/sdk/queue.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { type Output, program, temporaryFolder } from "./stage.ts";

const page = readFileSync(new URL("../../docs/operating.md", import.meta.url), "utf8");

/** The commands of one block of the page, each as its arguments. */
function commandsOf(block: string): string[][] {
  const found = new RegExp(`\`\`\`sh ${block}\n([\\s\\S]*?)\`\`\``).exec(page)?.[1];
  if (found === undefined) throw new Error(`docs/operating.md has no block ${block}`);
  return found
    .trim()
    .split("\n")
    .map((line) => [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c!).slice(1));
}

const wire = effect(
  "bank.wire",
  async (_: { invoice: string }): Promise<{ id: string }> => {
    throw new Error("the connection was reset");
  },
  { compensate: async () => {} },
);
const go = gate("go");
let steps = ["plan"];
const pay = workflow("pay", async (tape, input: { invoice: string }) => {
  await tape.step("plan", () => 1);
  return tape.effect(wire.with(input));
});
const changed = workflow("changed", async (tape) => {
  for (const step of steps) await tape.step(step, () => 1);
  await tape.gate(go);
  return "done";
});
const models = queue("models", { concurrency: 1, counts: "started" });
const ask = workflow("ask", async (tape, _customer: string) => tape.gate(go), {
  queue: models,
  key: (customer) => customer,
});
const runner = () => createRunner({ workflows: [pay, changed, ask], effects: [wire] });

async function scene() {
  const folder = await temporaryFolder();
  const url = `sqlite:${join(folder, "tape.db")}`;
  const agent = join(folder, "agent.ts");
  // The program loads definitions from the configured module, which here returns those of this test.
  (globalThis as { operatingRunner?: unknown }).operatingRunner = runner;
  await writeFile(agent, "export const buildRunner = () => globalThis.operatingRunner();\n");
  const config = join(folder, "tape.yaml");
  await writeFile(config, `agent: { runner_factory: "./agent.ts#buildRunner" }\ntape: { store: { url: "${url}" } }\n`);
  process.env.TAPE_CONFIG = config;
  onTestFinished(() => {
    delete process.env.TAPE_CONFIG;
  });
  const app = await Tape.open({ store: url, runner: runner(), leaseTtl: "2s" });
  onTestFinished(() => app.close());
  const until = async (id: string, status: string): Promise<void> => {
    await expect.poll(async () => (await app.runs.get(id))?.status, { timeout: 20_000 }).toBe(status);
  };
  /** `after`: called after each command, before the next. */
  const runBlock = async (block: string, file?: string, after?: (nr: number) => Promise<void>): Promise<Output[]> => {
    const outputs: Output[] = [];
    for (const args of commandsOf(block)) {
      const output = await program(...args.map((arg) => (arg.endsWith(".jsonl") ? (file ?? arg) : arg)));
      expect(output.stderr, args.join(" ")).toBe("");
      outputs.push(output);
      await after?.(outputs.length);
    }
    return outputs;
  };
  return { app, until, runBlock, folder };
}

describe("commands in docs/operating.md", () => {
  it("are all run by this test", () => {
    const blocks = [...page.matchAll(/```sh (\S+)/g)].map(([, name]) => name);
    expect(blocks.sort()).toEqual(
      [
        "deploy",
        "fork",
        "in-doubt",
        "leases",
        "overview",
        "queue",
        "queue-limits",
        "redrive",
        "restore",
        "retention",
        "stuck",
        "takeover",
      ].sort(),
    );
  });

  it("show and settle an effect in doubt", async () => {
    const { app, until, runBlock } = await scene();
    await app.start(pay, { invoice: "7" }, { id: "pay-1" });
    await until("pay-1", "STUCK");
    expect((await runBlock("overview")).map(({ code }) => code)).toEqual([3, 3]);
    const [list, inspected] = await runBlock("stuck");
    expect(list!.stdout).toContain("pay-1");
    expect(inspected!.stdout).toContain("durable-tape resolve effect pay-1 1");
    const [listed, resolved] = await runBlock("in-doubt");
    expect(listed!.stdout).toMatch(/pay-1 +1 +bank\.wire +STUCK/);
    expect(resolved!.code).toBe(0);
    await until("pay-1", "COMPLETED");
    expect((await app.runs.get("pay-1"))!.outcome).toEqual({ id: "W-7" });
    expect((await runBlock("overview")).map(({ code }) => code)).toEqual([0, 0]);
  });

  it("roll back an incompatible deploy, or fork the run", async () => {
    const { app, until, runBlock } = await scene();
    await app.start(changed, undefined as never, { id: "pay-2" });
    await until("pay-2", "WAITING");
    steps = ["another"];
    onTestFinished(() => {
      steps = ["plan"];
    });
    await app.signal("pay-2", gate("unused"), 1);
    await until("pay-2", "STUCK");
    const [plan] = await runBlock("fork");
    expect(plan!.stdout).toMatch(/kept, before position 1\n +0 {2}step plan\nruns again\n +1 {2}gate go/);
    steps = ["plan"];
    const [stuck, redriven] = await runBlock("deploy");
    expect(stuck!.stdout).toContain("pay-2");
    expect(redriven!.code).toBe(0);
    await until("pay-2", "WAITING");
    steps = ["another"];
    await app.signal("pay-2", gate("unused"), 2);
    await until("pay-2", "STUCK");
    steps = ["plan"];
    expect((await runBlock("redrive"))[0]!.code).toBe(0);
    await until("pay-2", "WAITING");
  });

  it("explain why a run waits in a queue, and change its limits", async () => {
    const { app, until, runBlock } = await scene();
    await app.start(ask, "acme", { id: "ask-1" });
    await until("ask-1", "WAITING");
    // The program has the workflow's definition, and with it the queue and the key of a run that it starts by name.
    const started = await program("start", "ask", "--id", "ask-2", "--input", '"acme"');
    expect(started.stdout).toBe("ask-2\n");
    expect(await app.queues.explain("ask-2")).toMatchObject({ queue: "models", key: "acme", state: "QUEUED" });
    const [all, keys, why] = await runBlock("queue");
    expect(all!.stdout).toMatch(/models +1 of 1 +1 +1 /);
    expect(keys!.stdout).toMatch(/acme +1 +1 /);
    expect(why!.stdout).toContain("queue full: 1 of 1 slots held by ask-1");
    // The raised limit lets it start, before the last command resets the limit.
    const outputs = await runBlock("queue-limits", undefined, async (nr) => {
      if (nr === 1) await until("ask-2", "WAITING");
    });
    expect(outputs.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    expect((await app.queues.list())[0]).toMatchObject({ running: 2, limits: { concurrency: 1 } });
  });

  it("list and take over leases, prune old runs and declare a restore", async () => {
    const { app, runBlock, folder } = await scene();
    const lease = await app.leases.acquire("sweeper", { ttl: "1h" });
    const [all, explained, history] = await runBlock("leases");
    expect(all!.stdout).toContain("sweeper");
    expect(explained!.stdout).toContain("held by");
    expect(history!.stdout).toContain("start");
    await runBlock("takeover");
    expect(await lease.renew()).toBe("lost");
    const [counted, deleted] = await runBlock("retention", join(folder, "old-runs.jsonl"));
    expect(counted!.stdout).toMatch(/^0 runs ended before/);
    expect(deleted!.stdout).toContain("0 runs deleted");
    const [restored, doctor] = await runBlock("restore");
    expect(restored!.stdout).toContain("store epoch 1");
    expect(doctor!.code).toBe(0);
  });
});
