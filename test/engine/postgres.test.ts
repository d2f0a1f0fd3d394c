import { expect, it } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { AckLost, outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { freshDatabase } from "../postgres/database.ts";
import { ownPostgres } from "../postgres/own.ts";

const postgresUrl = ownPostgres(18);

const go = gate<number>("go");

it("on PostgreSQL two processes park, resume, reconcile, compensate and hand over runs", async () => {
  const url = await freshDatabase(postgresUrl());
  const world: string[] = [];
  const wire = effect("wire", async (a: { k: string }, fx) => void world.push(`wire ${a.k} ${fx.key}`), {
    businessKey: (a) => a.k,
    observe: () => outcome.absent(),
    compensate: (a) => void world.push(`compensate ${a.k}`),
  });
  const lost = effect("lost", (_: null) => Promise.reject(new AckLost()), {
    businessKey: () => "lost",
    observe: () => outcome.confirmed("seen"),
  });
  const child = workflow("child", async (tape, n: number) => {
    await tape.sleep("20ms");
    return n * 10;
  });
  const all = workflow("all", async (tape, fails: boolean) => {
    await wire({ k: `${tape.runId} 1` });
    const answer = await tape.gate(go);
    const kid = await tape.spawn(child, answer.status === "received" ? answer.value : 0);
    const [seen, ten] = await Promise.all([fails ? "-" : lost(null), kid.result()]);
    await wire({ k: `${tape.runId} 2` });
    if (fails) throw new Error("on purpose");
    return [seen, ten];
  });
  const runner = createRunner({ workflows: [all, child], effects: [wire, lost] });
  await using one = await Tape.open({ store: url, runner });
  await using two = await Tape.open({ store: url, runner });
  const good = await one.start(all, false, { id: "good" });
  const bad = await two.start(all, true, { id: "bad" });
  // From the other process: the note must wake any process that may drive the run.
  await two.signal("good", go, 1);
  await one.signal("bad", go, 2);
  expect(await good.result()).toEqual(["seen", 10]);
  await expect(bad.result()).rejects.toMatchObject({ details: { status: "COMPENSATED" } });
  expect(world.filter((line) => line.startsWith("wire good"))).toHaveLength(2);
  expect(world.filter((line) => line.startsWith("compensate"))).toEqual(["compensate bad 2", "compensate bad 1"]);
  expect(new Set(world).size).toBe(world.length);
}, 30_000);
