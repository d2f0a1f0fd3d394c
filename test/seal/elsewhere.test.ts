import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { openRemote } from "../../src/client/open.ts";
import { serve } from "../../src/host/serve.ts";
import { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { freshDatabase } from "../postgres/database.ts";
import { ownPostgres } from "../postgres/own.ts";
import { testCodec } from "./codec.ts";
import { canaries, found, scenario } from "./scenario.ts";

const postgresUrl = ownPostgres(18);

/** Everything that a dump of the database would hold. */
async function dump(url: string): Promise<string> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const { rows } = await client.query("select tablename from pg_tables where schemaname = 'tape'");
    const texts: string[] = [];
    for (const { tablename } of rows as { tablename: string }[]) {
      const table = await client.query(`select t::text as line from tape.${tablename} t`);
      texts.push(...table.rows.map(({ line }: { line: string }) => line));
    }
    return texts.join("\n");
  } finally {
    await client.end();
  }
}

describe("a codec in front of PostgreSQL", () => {
  it("no payload is in a dump of the database", async () => {
    const dumps: string[] = [];
    for (const codec of [testCodec(), undefined]) {
      const url = await freshDatabase(postgresUrl());
      const { runner, play } = scenario();
      await using app = await Tape.open({ store: url, runner, log: "silent", ...(codec && { codec }) });
      await play(app);
      dumps.push(await dump(url));
    }
    expect(dumps[0]).toContain("sealed");
    expect(dumps.map(found)).toEqual([[], canaries.filter((name) => name !== "transaction")]);
  });
});

describe("a codec in a process behind a server", () => {
  it("encodes before it sends: the server's file, log and answers hold no payload", async () => {
    const folder = await mkdtemp(join(tmpdir(), "tape-remote-"));
    const lines: string[] = [];
    const log = (...line: unknown[]) => void lines.push(line.map(String).join(" "));
    try {
      await using server = await serve({ store: `sqlite:${join(folder, "tape.db")}`, port: 0, log });
      const { runner, play } = scenario();
      await using app = await Tape.connect(server.url, { runner, codec: testCodec(), log: "silent" });
      const { read } = await play(app);
      expect(read).toContain("input");
      const files = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name), "latin1")));
      expect(found(files.join())).toEqual([]);
      expect(files.join()).toContain("sealed");
      expect(found(lines.join())).toEqual([]);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it("an approver without the key answers with the binding that the server shows", async () => {
    await using server = await serve({ store: "memory:", port: 0, log: "silent" });
    const approve = gate<string>("approve");
    const pay = effect<number, string>("pay", (amount) => `paid ${amount}`, { semantics: "idempotent" });
    const flow = workflow("flow", async (tape, amount: number) => {
      const call = pay.with(amount);
      const answer = await tape.gate(approve, { binds: call });
      return answer.status === "received" ? `${answer.value}: ${await tape.effect(call)}` : "no";
    });
    const runner = createRunner({ workflows: [flow], effects: [pay] });
    await using app = await Tape.connect(server.url, { runner, codec: testCodec(), log: "silent" });
    const run = await app.start(flow, 7, { id: "r" });
    await expect.poll(() => app.gates.list({ run: "r" })).toHaveLength(1);
    const store = await openRemote(server.url, {});
    try {
      const [open] = await store.read.gates("default", { run: "r" });
      expect(open?.binds).toMatch(/^hmac:/);
      expect(open?.binds).not.toContain(pay.with(7).hash);
      const stale = { name: "approve", value: "yes", binds: "hmac:0000", mustMatch: true } as const;
      await expect(store.intake.signal("default", "r", stale)).rejects.toMatchObject({ code: "TAPE_GATE_STALE" });
      await store.intake.signal("default", "r", {
        name: "approve",
        value: "yes",
        binds: open!.binds!,
        mustMatch: true,
      });
    } finally {
      await store.close();
    }
    expect(await run.result()).toBe("yes: paid 7");
  });

  it("an operator without the key forks a run, and a schedule fires without it", async () => {
    await using server = await serve({ store: "memory:", port: 0, log: "silent" });
    const go = gate<string>("go");
    let failing = true;
    const flow = workflow("flow", async (tape, name: string) => {
      const greeting = await tape.step("greet", () => `dear ${name}`);
      await tape.step("fail", () => {
        if (failing) throw new Error("not yet");
      });
      return greeting;
    });
    const waiting = workflow("waiting", async (tape, name: string) => `${name} ${(await tape.gate(go)).status}`);
    const runner = createRunner({ workflows: [flow, waiting] });
    await using worker = await Tape.connect(server.url, { runner, codec: testCodec(), log: "silent" });
    const failed = await worker.start(flow, "ada", { id: "r" });
    await expect(failed.result()).rejects.toMatchObject({ code: "TAPE_RUN_FAILED" });
    failing = false;
    await using operator = await Tape.connect(server.url, { log: "silent" });
    const fork = await operator.fork("r", { by: "ada", reason: "fixed", id: "r2" });
    expect(await (await worker.run(fork.id)).result()).toBe("dear ada");

    await worker.schedules.create("tick", waiting, "eve", { cron: "* * * * * *" });
    const same = await worker.schedules.create("tick", waiting, "eve", { cron: "* * * * * *" });
    expect(same.input).toBe("eve");
    expect(JSON.stringify((await operator.schedules.list())[0]?.input)).toBe('{"encrypted":"k1"}');
    await expect.poll(() => worker.gates.list({}), { timeout: 5_000 }).toHaveLength(1);
    const [open] = await worker.gates.list({});
    await worker.schedules.delete("tick");
    await worker.signal(open!.run, go, "on");
    expect(await (await worker.run(open!.run)).result()).toBe("eve received");
  });
});
