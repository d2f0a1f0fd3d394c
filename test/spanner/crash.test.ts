import { afterAll, describe, expect, it } from "vitest";
import type { Store } from "../../src/store/contract/store.ts";
import { openSpanner } from "../../src/store/spanner/open.ts";
import type { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { rounds, survives } from "../examples/survival.ts";
import { type InTurn, inTime } from "../kit/virtual-postgres.ts";
import { ownEmulator } from "./fixture.ts";

/** Two examples: effects with compensations, and a wait for a signal with a deadline. */
const chosen = ["order", "approval"];

const admin = ownEmulator();
let now = 0;
let last: Promise<unknown> = Promise.resolve();
let ready: Promise<{ url: string; store: Store }> | undefined;

/** One call after another, so that the same program makes the same calls in every round. */
const inTurn: InTurn = (at, call) => {
  const turn = last.then(() => {
    now = at;
    return call();
  });
  last = turn.catch(() => {});
  return turn;
};

/** One store for all rounds, emptied before each, on the clock of the round. */
async function open(time: VirtualTime): Promise<Store> {
  return time.outside(async () => {
    ready ??= (async () => {
      const url = await admin().create();
      return { url, store: await openSpanner({ url, time: () => now }) };
    })();
    const { url, store } = await ready;
    await admin().empty(url);
    return inTime(store, time, inTurn);
  });
}

afterAll(async () => {
  await (await ready)?.store.close();
});

describe("examples survive a crash at every boundary on Spanner's emulator", { timeout: 1_800_000 }, () => {
  const here = rounds.filter(([mode, name]) => mode === "crash" && chosen.includes(name));
  it.each(here)("%s: %s", async (mode, _name, case_) => {
    const report = await survives(case_, mode, { openStore: (time) => open(time as VirtualTime) });
    expect(report.rounds).toBe(report.boundaries.length);
    expect(report.reached).toBe(report.rounds);
  });
  it("runs both examples", () => expect(here.map(([, name]) => name)).toEqual(chosen));
});
