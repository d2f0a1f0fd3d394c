import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agentOn, worldOn as agentWorld } from "../../examples/agent/agent.ts";
import { approvalOn, worldOn as approvalWorld, director, lead } from "../../examples/approval/agent.ts";
import { fileLedger, memoryLedger } from "../../examples/ledger.ts";
import { until } from "../../examples/until.ts";
import { isTapeError, Tape } from "../../src/exports/index.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { cases, happened, runId, sendSignals } from "./cases.ts";

const root = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);
let folder = "";
let count = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tape-examples-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
const freshStore = (): string => `sqlite:${join(folder, `${++count}.db`)}`;

describe("every example on SQLite", () => {
  it.each(cases.map((case_) => [case_.name, case_] as const))("%s", async (_, case_) => {
    const world = fileLedger(join(folder, `${case_.name}.jsonl`));
    const { workflow, runner } = case_.build(world);
    await using app = await Tape.open({ store: freshStore(), runner });
    const { budget } = case_;
    const handle = await app.start(workflow, case_.input as never, { id: runId, ...(budget && { budget }) });
    const settled = handle.result().catch((error: unknown) => error);
    await sendSignals(app, runId, case_);
    const outcome = await settled;
    expect((await app.runs.get(runId))?.status).toBe(case_.status);
    if (case_.status === "COMPLETED") expect(outcome).toEqual(case_.outcome);
    else expect(isTapeError(outcome, "TAPE_RUN_FAILED")).toBe(true);
    // Items and chunks run in parallel, so their order does not matter.
    const entries = happened(world);
    expect(case_.name === "import" ? entries.sort() : entries).toEqual(
      case_.name === "import" ? [...case_.world].sort() : case_.world,
    );
    expect(await checkProjection(app.store, [app.tenant])).toEqual([]);
  });
});

describe("every example is a program", () => {
  it.each([
    ["treasury", "world: book sweep-2026-11-15"],
    ["order", "world: free o-2"],
    ["trip", "world: cancel flight t-3"],
    ["approval", "{ paid: true, why: 'approved by Grace' }"],
    ["agent", "{ answer: 'Ada has a mail.', turns: 3 }"],
    ["import", "world: 44 items"],
    ["guarded", "  guarded:   the total is 200 (TAPE_FENCED)"],
    ["sandbox-gateway", "box-1: Deleted"],
  ])("%s", async (name, line) => {
    const { stdout, stderr } = await run(process.execPath, [join(root, "examples", name, "main.ts")], {
      cwd: folder,
      timeout: 20_000,
    });
    // An example that shows a failure logs it; only warnings are allowed.
    const logged = stderr.split("\n").filter((text) => text !== "");
    expect(logged.filter((text) => !text.includes('"level":"warn"'))).toEqual([]);
    expect(stdout.split("\n")).toContain(line);
  });

  it("and every folder of examples is tested", async () => {
    const entries = await readdir(join(root, "examples"), { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    const testedElsewhere = ["guarded", "reactors", "sandbox-gateway"]; // test/guard, test/cli/reactors.test.ts, test/host/gateway
    expect(folders.sort()).toEqual(
      ["agent", "approval", "import", "order", "treasury", "trip", ...testedElsewhere].sort(),
    );
  });
});

it("approval: a signal bound to another payment does not open the gate", async () => {
  const world = memoryLedger();
  const { expense, pay, runner } = approvalOn(approvalWorld(world));
  await using app = await Tape.open({ store: freshStore(), runner });
  const handle = await app.start(expense, { id: "e-1", who: "Ada", amount: 120 });
  const open = await until(async () => (await app.gates.list({ run: handle.id }))[0]);
  const other = pay.with({ id: "e-1", who: "Ada", amount: 120_000 });
  expect(open.binds).not.toBe(other.hash);
  await app.signal(handle.id, lead, { approved: true, by: "Mallory" }, { binds: other.hash });
  await app.signal(handle.id, lead, { approved: false, by: "Grace" }, { binds: open.binds });
  expect(await handle.result()).toEqual({ paid: false, why: "rejected by Grace" });
  expect(world.entries()).toEqual([]);
});

it("approval: the two gates have different names", () => {
  expect([lead.name, director.name]).toEqual(["lead", "director"]);
});

it("agent: stops before a model call that exceeds the budget", async () => {
  const world = memoryLedger();
  let calls = 0;
  const { agent, runner } = agentOn(agentWorld(world, () => calls++));
  await using app = await Tape.open({ store: freshStore(), runner });
  const handle = await app.start(agent, { question: "?" }, { budget: { tokens: 1_050 } });
  const error = await handle.result().catch((thrown: unknown) => thrown);
  expect(isTapeError(error, "TAPE_RUN_FAILED") && isTapeError(error.cause, "TAPE_BUDGET_EXCEEDED")).toBe(true);
  expect(calls).toBe(1); // 100 of 1 050 are spent, so the next 1 000 cannot be reserved
  expect(world.entries()).toEqual([]);
});

it.each([
  ["src/cli/demo/treasury/agent.ts", "examples/treasury/agent.ts"],
  ["src/cli/demo/treasury/bank.ts", "examples/treasury/bank.ts"],
  ["src/cli/demo/treasury/ledger.ts", "examples/ledger.ts"],
])("%s is %s but for its imports", async (published, example) => {
  const body = async (file: string): Promise<string> =>
    (await readFile(join(root, file), "utf8")).replace(/^(\/\/ In your own.*|import [^;]*;)\n/gm, "");
  expect(await body(published)).toBe(await body(example));
});
