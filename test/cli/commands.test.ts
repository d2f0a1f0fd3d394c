import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { program, temporaryFolder } from "./stage.ts";

const go = gate<{ ok: boolean }>("go");
const lost = effect(
  "bank.wire",
  async (_: { amount: number }): Promise<string> => {
    throw new Error("the connection was reset");
  },
  { compensate: async () => {} }, // no observe: an operator must resolve it
);
const pay = workflow("pay", async (tape, input: { amount: number }) => {
  await tape.step("plan", () => input.amount);
  const answer = await tape.gate(go, { payload: { amount: input.amount } });
  if (answer.status !== "received") return "no answer";
  return tape.effect(lost.with(input));
});
const sum = workflow("sum", async (tape, input: number[]) => {
  const total = await tape.step("add", () => input.reduce((a, b) => a + b, 0));
  if (total > 100) throw new Error(`too much: ${total}`);
  return total;
});
const runner = () => createRunner({ workflows: [pay, sum], effects: [lost] });

async function scene(work = true) {
  const folder = await temporaryFolder();
  const url = `sqlite:${join(folder, "tape.db")}`;
  const app = await Tape.open({ store: url, runner: runner(), leaseTtl: "2s", work });
  onTestFinished(() => app.close());
  const tape = (...args: string[]) => program(...args, "--store", url);
  const json = async (...args: string[]): Promise<unknown> => {
    const { code, stdout, stderr } = await tape(...args, "-o", "json");
    expect({ code: code === 3 ? 0 : code, stderr }).toEqual({ code: 0, stderr: "" });
    return JSON.parse(stdout);
  };
  const until = async (id: string, ...statuses: string[]): Promise<void> => {
    await expect.poll(async () => (await app.runs.get(id))?.status, { timeout: 20_000 }).toBeOneOf(statuses);
  };
  return { app, folder, url, tape, json, until };
}

describe("runs from the command line", () => {
  it("starts, awaits, lists, inspects and tails runs", async () => {
    const { tape, json, folder } = await scene();
    expect(await tape("start", "sum", "--input", "[1,2,3]", "--id", "s1", "--label", "team=books", "--wait")).toEqual({
      code: 0,
      stdout: "s1  6\n",
      stderr: "",
    });
    await writeFile(join(folder, "input.json"), "[1,2,3]");
    const repeated = await tape("start", "sum", "--input", `@${join(folder, "input.json")}`, "--id", "s1");
    expect(repeated.stdout).toBe("s1  (already started)\n");
    const conflict = await tape("start", "sum", "--input", "[9]", "--id", "s1");
    expect(conflict).toMatchObject({ code: 1, stdout: "" });
    expect(conflict.stderr).toContain("TAPE_RUN_CONFLICT");
    const failed = await tape("start", "sum", "--input", "[101]", "--id", "s2", "--wait");
    expect(failed).toMatchObject({ code: 1 });
    expect(failed.stderr).toContain("TAPE_RUN_FAILED");
    expect(await json("runs", "--status", "COMPLETED")).toMatchObject([{ id: "s1", outcome: 6 }]);
    expect(await json("runs", "--label", "team=books")).toHaveLength(1);
    expect(await json("runs", "--prefix", "s1")).toMatchObject([{ id: "s1" }]);
    expect(await json("runs", "--prefix", "s", "--ended-since", "1h")).toMatchObject([{ id: "s1" }, { id: "s2" }]);
    expect(await json("runs", "--since", "1h")).toMatchObject([{ id: "s2" }, { id: "s1" }]);
    expect(await json("runs", "--until", "2020-01-01")).toEqual([]);
    expect(await json("runs", "--in-doubt")).toEqual([]);
    const page = (await tape("runs", "--limit", "1")).stdout;
    expect(page).toMatch(/s2 +FAILED +sum/);
    const [, cursor = ""] = /more: --after (\d+)/.exec(page) ?? [];
    expect(await json("runs", "--after", cursor)).toMatchObject([{ id: "s1" }]);
    expect(await json("inspect", "s1")).toMatchObject({
      run: { status: "COMPLETED" },
      journal: [
        { kind: "run.created" },
        { kind: "term.started" },
        { kind: "step.done", data: { value: 6 } },
        { kind: "run.ended" },
      ],
      terms: [{ token: "1" }],
    });
    expect((await tape("inspect", "s1")).stdout).toMatch(/journal\n +SEQ[\s\S]*step\.done/);
    expect((await tape("tail", "s1", "--follow")).stdout.trim().split("\n")).toHaveLength(4);
    const feed = (await tape("tail", "-o", "json")).stdout.trim().split("\n");
    expect(feed.map((line) => (JSON.parse(line) as { kind: string }).kind)).toContain("run.ended");
  });

  it("shows the error of a failed run, and effects newest first with --newest", async () => {
    const { tape, json, until } = await scene();
    expect((await tape("start", "sum", "--input", "[200]", "--id", "s2", "--wait")).code).toBe(1);
    expect((await tape("runs", "--status", "FAILED")).stdout).toMatch(/^s2 .* Error: too much: 200$/m);
    expect((await tape("inspect", "s2")).stdout).toContain("\nerror Error: too much: 200\n");
    const error = { name: "Error", message: "too much: 200" };
    expect(await json("runs", "--status", "FAILED")).toMatchObject([{ id: "s2", error }]);
    for (const id of ["n1", "n2"]) {
      await tape("start", "pay", "--input", '{"amount":1}', "--id", id);
      await tape("signal", id, "go", "--value", '{"ok":true}');
      await until(id, "STUCK");
    }
    const runsOf = async (...flags: string[]) =>
      (await tape("effects", ...flags)).stdout.split("\n").flatMap((line) => /^n\d/.exec(line) ?? []);
    expect(await runsOf()).toEqual(["n1", "n2"]);
    expect(await runsOf("--newest")).toEqual(["n2", "n1"]);
    expect(await runsOf("--newest", "--status", "UNKNOWN,STUCK")).toEqual(["n2", "n1"]);
  });

  it("exits 2 and writes nothing when the command line is wrong", async () => {
    const { tape, app } = await scene(false);
    for (const [args, message] of [
      [["start", "sum", "--input", "{"], "--input is not valid JSON"],
      [["start"], "start: missing <workflow>"],
      [["start", "sum", "--label", "x"], "--label must be KEY=VALUE"],
      [["start", "sum", "--budget", "usd=much"], "--budget usd must be an amount"],
      [["runs", "--limit", "many"], "--limit must be a whole number"],
      [["runs", "-o", "xml"], "-o must be table or json"],
      [["runs", "--since", "tomorrow-ish"], "--since must be a time such as 2026-11-16T08:00Z or 2h, not tomorrow-ish"],
      [["prune", "--older-than", "90 days", "--reason", "r"], 'did you mean "90d"?'],
      [["prune", "--reason", "r"], "--older-than is required: a duration such as 90d"],
      [["token", "create", "x", "--role", "reader", "--expires", "soon"], "--expires is not a duration"],
      [["cancel", "x"], "--reason is required"],
      [["resolve", "effect", "x", "one", "--as", "failed", "--reason", "r"], "<pos> must be a position"],
      [
        ["resolve", "effect", "x", "1", "--as", "maybe", "--reason", "r"],
        "--as must be confirmed, failed, retry, observe or compensate, not maybe",
      ],
      [
        ["lease", "steal", "x"],
        "lease: unknown subcommand steal, expected one of ls, explain, history, takeover, release",
      ],
      [["lease"], "lease: missing subcommand, one of ls, explain, history, takeover, release"],
      [["runs", "--statsu", "x"], "Unknown option '--statsu'"],
    ] as const) {
      const output = await tape(...args);
      expect(output, message).toMatchObject({ code: 2, stdout: "" });
      expect(output.stderr).toContain(message);
    }
    expect(await app.runs.list()).toEqual([]);
  });

  it("escapes control characters of stored text", async () => {
    const { tape } = await scene(false);
    await tape("start", "sum", "--input", '"\\u001b[31mred\\u0007"', "--id", "a\u001b]0;x\u0007b");
    const { stdout } = await tape("runs");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
    expect(stdout).toContain("a\\e]0;x\\u0007b");
  });

  it("does not create a missing store when a command only reads", async () => {
    const folder = await temporaryFolder();
    const missing = await program("runs", "--store", `sqlite:${join(folder, "none.db")}`);
    expect(missing).toMatchObject({ code: 1 });
    expect(missing.stderr).toMatch(/file .* not found; start a run first/);
    expect(await program("migrate", "--store", `sqlite:${join(folder, "none.db")}`)).toMatchObject({ code: 0 });
    expect(await program("runs", "--store", `sqlite:${join(folder, "none.db")}`)).toMatchObject({ code: 0 });
    const repeated = await program("migrate", "--store", `sqlite:${join(folder, "none.db")}`, "-o", "json");
    expect(JSON.parse(repeated.stdout)).toMatchObject({ schema: expect.any(Number), epoch: 0 });
    expect(await program("migrate", "--plan", "--grants", "app")).toMatchObject({ code: 2 });
    const grants = await program("migrate", "--grants", "app", "--store", `sqlite:${join(folder, "none.db")}`);
    expect(grants).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("only a PostgreSQL database"),
    });
  });
});

describe("an operator at the command line", () => {
  it("approves a gate and resolves a stuck effect; status and doctor exit 3 until then", async () => {
    const { tape, json, until, folder, url } = await scene();
    await tape("start", "pay", "--input", '{"amount":5}', "--id", "p1");
    await until("p1", "WAITING");
    expect(await json("gates")).toMatchObject([{ id: "p1", name: "go" }]);
    expect(await tape("status")).toMatchObject({ code: 0 });
    const stale = await tape("signal", "p1", "go", "--value", '{"ok":true}', "--binds", "another call");
    expect(stale).toMatchObject({ code: 1, stderr: expect.stringContaining("TAPE_GATE_STALE") });
    expect((await tape("signal", "p1", "go", "--value", '{"ok":true}', "--key", "k")).stdout).toMatch(/^note \d+\n$/);
    expect((await tape("signal", "p1", "go", "--value", "1", "--key", "k")).stdout).toContain("duplicate key");
    await until("p1", "STUCK");
    const status = await tape("status");
    expect(status.code).toBe(3);
    expect(status.stdout).toMatch(/STUCK 1\nin doubt +effects UNKNOWN 0, STUCK 1;[\s\S]*Needs attention: /);
    const doctor = await tape("doctor");
    expect(doctor.code).toBe(3);
    expect(doctor.stdout).toMatch(/warn +attention +runs: 1 STUCK; effects: 0 UNKNOWN, 1 STUCK/);
    expect(await json("effects", "--status", "STUCK")).toMatchObject([{ name: "bank.wire", pos: 2 }]);
    expect((await tape("inspect", "p1")).stdout).toContain("durable-tape resolve effect p1 2 --as confirmed");
    // The command needs the definitions to arm the compensation; they come from the configuration.
    await writeFile(join(folder, "tape.yaml"), `tape: { store: { url: "${url}" } }\n`);
    expect(await json("runs", "--in-doubt")).toMatchObject([{ id: "p1" }]);
    const observed = await tape("resolve", "effect", "p1", "2", "--as", "observe", "--reason", "the bank is back");
    expect(observed).toMatchObject({ code: 0, stdout: "p1 2: observation requested\n" });
    const resolved = await tape("resolve", "effect", "p1", "2", "--as", "failed", "--reason", "seen at the bank");
    expect(resolved).toMatchObject({ code: 0, stderr: "" });
    await until("p1", "FAILED");
    expect(await tape("status")).toMatchObject({ code: 0 });
    const inspected = (await json("inspect", "p1")) as { effects: { status: string }[] };
    expect(inspected.effects).toMatchObject([{ status: "FAILED", reason: "operator" }]);
  });

  it("cancels and forks a run, and redrives only a stuck one", async () => {
    const { tape, json, until } = await scene();
    await tape("start", "pay", "--input", '{"amount":6}', "--id", "p2");
    await until("p2", "WAITING");
    expect(await tape("redrive", "p2", "--reason", "r")).toMatchObject({ code: 1 });
    expect(await tape("cancel", "p2", "--reason", "no longer needed", "--by", "ada")).toMatchObject({
      code: 0,
      stdout: "p2: cancel requested\n",
    });
    await until("p2", "CANCELLED");
    expect((await tape("fork", "p2", "--dry-run")).stdout).toMatch(
      /kept, before position 1\n +0 {2}step plan\nruns again/,
    );
    expect(await tape("fork", "p2")).toMatchObject({ code: 2 });
    expect(await json("fork", "p2", "--id", "p3", "--reason", "the answer came late")).toMatchObject({ id: "p3" });
    await until("p3", "WAITING");
    const [action] = (await tape("tail", "p3", "--from", "2", "-o", "json")).stdout.split("\n");
    expect(JSON.parse(action!)).toMatchObject({
      kind: "operator.action",
      data: { action: "fork", reason: "the answer came late" },
    });
  });

  it("lists, explains and takes over leases, but does not release a live holder's", async () => {
    const { app, tape, json } = await scene();
    const lease = await app.leases.acquire("sweeper", { ttl: "1h" });
    expect(await json("lease", "ls")).toMatchObject([{ name: "sweeper", state: "HELD" }]);
    expect((await tape("lease", "explain", "sweeper")).stdout).toContain("sweeper: held by");
    const release = await tape("lease", "release", "sweeper", "--reason", "gone");
    expect(release).toMatchObject({ code: 1 });
    expect(release.stderr).toContain("TAPE_LEASE_HELD");
    const takeover = await tape("lease", "takeover", "sweeper", "--reason", "it hangs", "--by", "ada");
    expect(takeover).toMatchObject({ code: 0, stdout: "sweeper: holder fenced, lease free\n", stderr: "" });
    expect(await lease.renew()).toBe("lost");
    expect(await json("lease", "history", "sweeper")).toMatchObject([
      { startReason: "start", endReason: "manual" },
      { startReason: "manual", by: "ada", auditReason: "it hangs", endReason: "manual" },
    ]);
    expect(await tape("lease", "explain", "missing")).toMatchObject({ code: 1 });
    expect((await tape("lease", "ls")).stdout).toBe("no leases held\n");
  });

  it("creates, lists and revokes tokens; store restored raises the epoch", async () => {
    const { tape, json } = await scene(false);
    const created = (await json("token", "create", "ci", "--role", "worker", "--expires", "90d", "--reason", "r")) as {
      id: string;
      token: string;
    };
    expect(created.token).toMatch(new RegExp(`^${created.id}\\.[\\w-]{40,}$`));
    expect(JSON.stringify(await json("token", "ls"))).not.toContain(created.token.split(".")[1]);
    expect(await tape("token", "create", "x", "--role", "king", "--reason", "r")).toMatchObject({ code: 2 });
    expect(await tape("token", "revoke", created.id, "--reason", "left")).toMatchObject({ code: 0 });
    expect(await json("token", "ls")).toMatchObject([
      { id: created.id, role: "worker", revokedAt: expect.any(Number) },
    ]);
    expect((await tape("store", "restored", "--reason", "from last night")).stdout).toContain("store epoch 1");
    expect(await tape("timers")).toMatchObject({ code: 0, stdout: "no timers set\n" });
  });

  it("prune exports and deletes old runs; their ids stay reserved", async () => {
    const { tape, app, folder } = await scene();
    for (const id of ["old-1", "old-2"]) await tape("start", "sum", "--input", "[1]", "--id", id, "--wait");
    expect(await tape("prune", "--older-than", "1h", "--reason", "r")).toMatchObject({
      code: 0,
      stdout: "0 runs deleted; ids stay reserved\n",
    });
    expect((await tape("prune", "--older-than", "1ms", "--dry-run")).stdout).toMatch(/^2 runs ended before/);
    expect(await app.runs.list()).toHaveLength(2);
    const file = join(folder, "old.jsonl");
    expect(await tape("prune", "--older-than", "1ms", "--export", file, "--reason", "a year is enough")).toMatchObject({
      code: 0,
    });
    expect(await app.runs.list()).toEqual([]);
    const lines = (await readFile(file, "utf8")).trim().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { run: { id: string } }).run.id).sort()).toEqual([
      "old-1",
      "old-2",
    ]);
    const reused = await tape("start", "sum", "--input", "[1]", "--id", "old-1");
    expect(reused.stderr).toContain("TAPE_RUN_GONE");
  });

  it.each(["bash", "zsh", "fish"])("completion for %s lists the commands", async (shell) => {
    const { code, stdout } = await program("completion", shell);
    expect(code).toBe(0);
    for (const word of ["inspect", "takeover", "--follow".replace(/^--/, shell === "fish" ? "-l " : "--")]) {
      expect(stdout).toContain(word);
    }
  });
});
