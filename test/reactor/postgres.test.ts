import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { compensation } from "../../src/reactor/compensation.ts";
import { outbox } from "../../src/reactor/outbox.ts";
import { reconciler } from "../../src/reactor/reconciler.ts";
import { timers } from "../../src/reactor/timers.ts";
import { AckLost, outcome } from "../../src/sdk/outcomes.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { record } from "../../testkit/conformance/frame.ts";
import { armed, begin, confirmed, decided } from "../../testkit/conformance/holder.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { ownPostgres } from "../postgres/own.ts";
import { stageOn, story, waiting } from "./stage.ts";

const postgresUrl = ownPostgres(18);

let database: string;
let stores: [Store, Store];

beforeAll(async () => {
  database = await freshDatabase(postgresUrl());
  stores = [await openPostgres({ url: database }), await openPostgres({ url: database })];
});

afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await dropDatabase(database);
});

/** Two clients of one database, each with its own keeper. */
const setTwo = () => {
  const stage = stageOn(stores[0], systemClock);
  const replicas = (parts: Parameters<typeof stage.replica>[0]) =>
    stores.map((store) => stage.replica({ ...parts, store }));
  return { ...stage, replicas };
};

const sum = (counts: readonly { found: number }[]): number => counts.reduce((all, { found }) => all + found, 0);

describe("on PostgreSQL, two replicas", () => {
  it("outbox: each of many items is sent once", async () => {
    const { store, replicas, wire, world } = setTwo();
    const runs = await Promise.all(Array.from({ length: 20 }, () => waiting(store)));
    const reactors = replicas({ effects: [wire()] }).map((replica) => outbox(replica));
    while (sum(await Promise.all(reactors.map((reactor) => reactor.runOnce(5)))) > 0);
    expect(world.map(({ key }) => key).toSorted()).toEqual(runs.map(({ id }) => `${id}:0`).toSorted());
    for (const run of runs) expect((await run.effect(0)).status).toBe("CONFIRMED");
  });

  it("reconciler: one replica observes an effect in doubt", async () => {
    const { store, replicas, wire, world } = setTwo();
    const run = await waiting(store);
    let observations = 0;
    const observe = () => outcome.confirmed(++observations);
    const grounds = replicas({
      effects: [
        wire({ businessKey: () => "k", observe }, () => {
          throw new AckLost();
        }),
      ],
    });
    await Promise.all(grounds.map((deps) => outbox(deps).runOnce(10)));
    await Promise.all(grounds.map((deps) => reconciler(deps).runOnce(10)));
    expect(await story(store, run)).toEqual(["attempt 1", "UNKNOWN ack_lost", "confirmed", "CONFIRMED observed"]);
    expect([world.length, observations]).toEqual([1, 1]);
  });

  it("compensation: strictly newest first", async () => {
    const { store, replicas, wire } = setTwo();
    const compensated: unknown[] = [];
    const run = await begin(store);
    for (const pos of [0, 1, 2]) {
      const args = { args: pos, result: pos };
      await run.write(...confirmed(pos), armed(pos, { name: "wire", semantics: "non_idempotent", args }));
    }
    await run.write(decided("failed"), record("run.compensating", {}));
    const grounds = replicas({ effects: [wire({ compensate: (args) => void compensated.push(args) })] });
    for (let k = 0; k < 4; k++) await Promise.all(grounds.map((deps) => compensation(deps).runOnce(10)));
    expect(compensated).toEqual([2, 1, 0]);
  });

  it("timers: each is fired once, none early", async () => {
    const { store, replicas } = setTwo();
    const run = await begin(store);
    const soon = Array.from({ length: 20 }, (_, pos) => record("timer.set", { pos, purpose: "sleep", delayMs: 0 }));
    await run.write(...soon, record("timer.set", { pos: 99, purpose: "sleep", delayMs: 3_600_000 }));
    const rounds = await Promise.all(replicas({}).map((deps) => timers(deps).runOnce(100)));
    expect(rounds.reduce((all, { done }) => all + done, 0)).toBe(20);
    expect((await run.view()).notes).toBe(20);
  });
});
