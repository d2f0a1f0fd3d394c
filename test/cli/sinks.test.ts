import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { diagnose } from "../../src/cli/commands/doctor.ts";
import { sinkFindings } from "../../src/cli/commands/doctor-sinks.ts";
import { openStore } from "../../src/host/open-store.ts";
import { sinkLease } from "../../src/model/dead-letter.ts";
import type { Term } from "../../src/model/lease.ts";
import { checkpointText, readCheckpoint } from "../../src/model/sink-checkpoint.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { acquired, claimant, request } from "../../testkit/conformance/frame.ts";
import { renewed } from "../../testkit/conformance/lease-fixtures.ts";
import { openBlank } from "../blank-database.ts";
import { project, Sidecar } from "./sidecar.ts";
import { program, temporaryFolder } from "./stage.ts";

const tenant = "default";
const operator = ["--by", "ada", "--reason", "drill"];
const hour = 3_600_000;

/** A sleep lets its time pass. */
class PassingClock extends ManualClock {
  override sleep(ms: number): Promise<void> {
    return this.elapse(ms);
  }
}

const hold = (store: Store, sink: string, nonce = 1n): Promise<Term> =>
  acquired(store, request({ name: sinkLease(sink) }, { nonce, claimant: claimant("w", { ttlMs: 24 * hour }) }), tenant);

async function letter(store: Store, { fence }: Term, k: number): Promise<void> {
  const refusal = { kind: "run.ended", attempts: 3, code: "422", error: "no such invoice" };
  await store.fenced.deadLetter(fence, { event: `${k}:1:5`, journal: k, seq: 1, inbox: false, ...refusal });
}

/** Sink billing at the start of a feed with one run, held by a process, with three dead letters. */
async function scene() {
  const url = `sqlite:${join(await temporaryFolder(), "tape.db")}`;
  const store = await openStore(url);
  onTestFinished(() => store.close());
  await store.intake.createRuns(tenant, [{ id: "a", workflow: "w", input: 1 }]);
  const term = await hold(store, "billing");
  await store.fenced.checkpoint(term.fence, checkpointText({ cursor: null, at: 0, epoch: 0 }));
  for (const k of [1, 2, 3]) await letter(store, term, k);
  const tape = (...args: string[]) => program(...args, "--store", url);
  const row = async () => (await store.read.sinks(tenant))[0]!;
  return { store, tape, row };
}

describe("sinks on the command line", () => {
  it("lists and explains a sink, and its dead letters", async () => {
    const { tape } = await scene();
    const listed = await tape("sinks");
    expect(listed.code).toBe(3);
    expect(listed.stdout).toMatch(
      /^SINK +STATE +LAG +DEAD LETTERS +HOLDER +NOTE\nbilling +running +\d+ m?s +3 +label of w/,
    );
    const [view] = JSON.parse((await tape("sinks", "-o", "json")).stdout) as object[];
    expect(view).toMatchObject({ name: "billing", state: "running", openLetters: 3, keptRuns: 0 });
    const explained = (await tape("sink", "explain", "billing")).stdout;
    expect(explained).toMatch(/^billing: running, held by label of w; it has passed nothing\n/);
    expect(explained).toMatch(/the first record that it has not passed is \d+ m?s old\n3 open dead letters; next: /);
    const letters = await tape("sink", "dead-letters", "billing", "--limit", "2");
    expect(letters.stdout.match(/^\d:1:5 +run\.ended +3 +422 +no such invoice$/gm)).toHaveLength(2);
    expect(await tape("sink", "explain", "bilings")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("TAPE_SINK_UNKNOWN"),
    });
    expect((await tape("sink", "dead-letters", "billing", "--state", "lost")).code).toBe(2);
  });

  it("replays and discards dead letters, with a reason", async () => {
    const { tape, store } = await scene();
    expect(await tape("sink", "replay", "billing")).toMatchObject({ code: 2 });
    const replayed = await tape("sink", "replay", "billing", "--event", "2:1:5", "--event", "9:9:9", ...operator);
    expect(replayed).toMatchObject({ code: 0, stdout: "1 dead letter will be sent again\n" });
    expect((await tape("sink", "dead-letters", "billing", "--state", "replay")).stdout).toContain("2:1:5");
    const discarded = await tape("sink", "discard", "billing", ...operator);
    expect(discarded.stdout).toBe("2 dead letters discarded\n");
    expect((await tape("sink", "dead-letters", "billing")).stdout).toBe("no dead letters\n");
    const states = await Promise.all(
      (["REPLAY", "DISCARDED"] as const).map((state) => store.read.deadLetters(tenant, "billing", { state })),
    );
    expect(states.map((list) => list.map(({ event }) => event))).toEqual([["2:1:5"], ["1:1:5", "3:1:5"]]);
    expect((await tape("audit")).stdout.match(/ada .*sink\.(replay|discard).* drill/g)).toHaveLength(2);
  });

  it("pauses, resumes, rewinds and forgets a sink, and fences its holder", async () => {
    const { tape, store, row } = await scene();
    const change = async (...args: string[]): Promise<void> => {
      expect(await tape("sink", ...args, ...operator), args.join(" ")).toMatchObject({ code: 0 });
    };
    expect((await tape("sink", "pause", "billing")).code).toBe(2);
    const { token } = (await row()).lease;
    await change("pause", "billing");
    expect(await row()).toMatchObject({ state: "paused", paused: { by: "ada", reason: "drill" } });
    expect((await row()).lease.token).toBeGreaterThan(token);
    expect((await tape("sinks")).stdout).toMatch(/billing +paused .*ada: drill/);
    expect((await tape("sink", "explain", "billing")).stdout).toContain("paused by ada: drill; next: sink resume");
    await change("rewind", "billing", "--to", "now");
    expect(await row()).toMatchObject({ state: "paused", paused: { reason: "drill" } });
    expect((await row()).passedAt).toBeGreaterThan(0);
    await change("resume", "billing");
    expect((await row()).paused).toBeUndefined();
    const { records } = await store.read.feed(undefined, 1, tenant);
    const { journal, seq, at } = records[0]!;
    await change("rewind", "billing", "--to", `${journal}:${seq}:${at}`);
    expect(readCheckpoint((await row()).lease.checkpoint)).toMatchObject({ cursor: null });
    expect((await row()).lagMs).toBeGreaterThan(0);
    await change("forget", "billing");
    const { lease, lagMs } = await row();
    expect([lease.checkpoint, lagMs]).toEqual([undefined, 0]);
    expect(await tape("sink", "rewind", "billing", ...operator)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--to EVENT, --to start or --to now"),
    });
    expect(await tape("sink", "rewind", "billing", "--to", "99:1:5", ...operator)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("TAPE_NOT_FOUND"),
    });
    expect(await tape("sink", "pause", "none", ...operator)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("TAPE_SINK_UNKNOWN"),
    });
    const actions = (await store.read.audit(tenant)).map(({ action }) => action).toReversed();
    expect(actions).toEqual(["pause", "rewind", "resume", "rewind", "forget"].map((verb) => `sink.${verb}`));
  });
});

describe("doctor", () => {
  it("names sinks that are late, blocked or paused, dead letters, and runs that pruning keeps", async () => {
    const clock = new PassingClock();
    const store = await openSqlite({ file: ":memory:", clock, open: openBlank });
    onTestFinished(() => store.close());
    const findings = async () => Object.fromEntries((await sinkFindings(store, tenant)).map((of) => [of.check, of]));
    expect(await findings()).toEqual({});
    const terms = [await hold(store, "billing", 1n), await hold(store, "bus", 2n)];
    for (const { fence } of terms) {
      const text = checkpointText({ cursor: await store.read.frontier(tenant), at: clock.wall(), epoch: 0 });
      await store.fenced.checkpoint(fence, text);
    }
    const ok = { state: "ok" };
    expect(await findings()).toMatchObject({ sinks: ok, "dead letters": ok, retention: ok });
    const run = { ...claimant("w", { ttlMs: 24 * hour }), nonce: 3n };
    const [made] = await store.intake.createRuns(tenant, [{ id: "a", workflow: "w", input: 1 }], run);
    const { fence, head } = (made as { term: Term }).term;
    await store.fenced.append(fence, {
      after: head,
      records: [{ kind: "run.ended", data: { status: "COMPLETED", outcome: 1, notesTaken: 0 } }],
    });
    await clock.elapse(90_000);
    expect((await findings()).sinks).toMatchObject(ok);
    await renewed(store, terms[0]!, 1, "retrying: 503 of https://billing.example");
    await letter(store, terms[1]!, 1);
    expect(await findings()).toMatchObject({
      sinks: { state: "warn", message: "billing is 1.5 m late, retrying: 503 of https://billing.example" },
      "dead letters": { state: "warn", message: "bus: 1 open dead letter" },
      retention: ok,
    });
    await clock.elapse(hour);
    const late = await findings();
    expect(late.sinks?.message).toMatch(/^billing is 1 h late, retrying.*; bus is 1 h late$/);
    expect(late.retention).toMatchObject({
      state: "warn",
      message:
        "billing has not passed 1 run that ended over an hour ago; bus has not passed 1 run that ended over an hour ago",
      next: expect.stringContaining("sink forget"),
    });
    const paused = { by: "ada", reason: "maintenance", at: clock.wall() };
    const cursor = await store.read.frontier(tenant);
    await store.fenced.checkpoint(terms[1]!.fence, checkpointText({ cursor, at: clock.wall(), epoch: 0, paused }));
    const all = await diagnose(store, tenant, "sqlite::memory:", clock);
    expect(all.slice(-3)).toEqual(await sinkFindings(store, tenant));
    expect((await findings()).sinks?.message).toMatch(/^bus is paused by ada: maintenance; billing is/);
  });
});

describe("a fan-out as a process", () => {
  const yaml = `tape:
  store: { url: "sqlite:tape.db" }
  events: { sinks: { ledger: { handler: "./sink.ts#ledger", from: start }, other: { kind: log } } }
`;
  const sink = `import { appendFileSync } from "node:fs";
export const ledger = async (events: readonly { type: string; subject: string }[]) => {
  for (const { type, subject } of events) appendFileSync("ledger.log", type + " " + subject + "\\n");
};`;

  it("tape-reactors --only sink-NAME sends to this sink alone, and leaves its checkpoint", async () => {
    const folder = project({ "tape.yaml": yaml, "sink.ts": sink });
    const store = await openStore(`sqlite:${join(folder, "tape.db")}`);
    onTestFinished(() => store.close());
    await store.intake.createRuns(tenant, [{ id: "a", workflow: "w", input: 1 }]);
    const sidecar = new Sidecar(folder, ["--only", "sink-ledger"]);
    const file = join(folder, "ledger.log");
    await sidecar.until(() => existsSync(file) && readFileSync(file, "utf8").includes("run.created a\n"));
    expect(sidecar.logged("reactors.started")?.reactors).toEqual(["sink-ledger"]);
    expect(await sidecar.stop()).toBe(0);
    const rows = await store.read.sinks(tenant);
    expect(rows).toMatchObject([{ sink: "ledger", state: "off", openLetters: 0 }]);
    expect(rows[0]!.passedAt).toBeGreaterThan(0);
  }, 30_000);

  it("durable-tape fanout refuses a sink that tape.yaml does not have", async () => {
    const folder = project({ "tape.yaml": yaml, "sink.ts": sink });
    const config = ["--config", join(folder, "tape.yaml")];
    expect(await program("fanout", "ledgr", ...config)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("unknown sink ledgr; did you mean ledger?"),
    });
  });
});

describe("singleton reshard", () => {
  it("fences and pauses the shards of other numbers, and resumes those of the new one", async () => {
    const { tape, store } = await scene();
    const shard = (name: string, nonce: bigint) =>
      acquired(store, request({ name }, { nonce, claimant: claimant("w", { ttlMs: hour }) }), tenant);
    const old = await shard("sweep 0/2", 11n);
    await shard("sweep 1/2", 12n);
    const done = await tape("singleton", "reshard", "sweep", "--to", "4", ...operator);
    expect(done).toMatchObject({
      code: 0,
      stdout: "sweep: 2 shards fenced and paused, 0 resumed; start processes with 4 shards\n",
    });
    await expect(store.fenced.checkpoint(old.fence, "late")).rejects.toMatchObject({ code: "TAPE_FENCED" });
    expect((await tape("lease", "explain", "sweep 1/2")).stdout).toContain("paused by an operator");
    const back = await tape("singleton", "reshard", "sweep", "--to", "2", ...operator);
    expect(back.stdout).toContain("0 shards fenced and paused, 2 resumed");
    expect((await tape("singleton", "reshard", "sweep", ...operator)).code).toBe(2);
    expect((await tape("singleton", "reshard", "sweep", "--to", "4")).code).toBe(2);
    expect(await tape("singleton", "reshard", "none", "--to", "4", ...operator)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("singleton none has no shards"),
    });
  });
});
