import { beforeEach, expect, it } from "vitest";
import { recordedCall } from "../../src/guard/recorded-call.ts";
import { TapeError } from "../../src/model/errors.ts";
import { DefiniteFailure, NotSent, outcome } from "../../src/sdk/outcomes.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { ManualClock } from "../../testkit/clock.ts";

let clock: ManualClock;
let store: Store;
beforeEach(async () => {
  clock = new ManualClock();
  store = await openSqlite({ file: ":memory:", clock });
  return () => store.close();
});

const place = () => ({ store, tenant: "default" });
const owner = (token: bigint) => ({ name: "printer", token });
const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.catch((error: unknown) => (error instanceof TapeError ? error.code : String(error)));
const lost = async (): Promise<never> => {
  throw new Error("the answer was lost");
};

it("calls once and returns the recorded result to every later owner", async () => {
  let calls = 0;
  const call = async () => ++calls;
  expect(await recordedCall(place(), owner(1n), "k", call)).toBe(1);
  expect(await recordedCall(place(), owner(1n), "k", call)).toBe(1);
  expect(await recordedCall(place(), owner(2n), "k", call)).toBe(1);
  expect(await recordedCall(place(), owner(2n), "another", call)).toBe(2);
});

it("refuses an invalid send window before anything is written", async () => {
  let calls = 0;
  for (const sendWithin of [null, "soon", Number.NaN]) {
    const refused = codeOf(
      recordedCall(place(), owner(1n), "k", async () => ++calls, { sendWithin: sendWithin as never }),
    );
    expect(await refused).toBe("TAPE_BAD_INPUT");
  }
  expect([calls, await store.read.values("default", "")]).toEqual([0, []]);
});

it("lets one of two owners call, and never a lower token after a higher one", async () => {
  let calls = 0;
  const call = async () => ++calls;
  const both = await Promise.all([1n, 2n].map((token) => codeOf(recordedCall(place(), owner(token), "k", call))));
  expect(calls).toBe(1);
  expect(both.sort()).toEqual([1, "TAPE_FENCED"].sort());
  await codeOf(recordedCall(place(), owner(5n), "j", lost));
  const observe = async () => outcome.absent({ final: true });
  expect(await codeOf(recordedCall(place(), owner(4n), "j", call, { observe }))).toBe("TAPE_FENCED");
});

it("throws TAPE_OUTCOME_UNKNOWN after a lost response without observe", async () => {
  expect(await codeOf(recordedCall(place(), owner(1n), "k", lost))).toBe("Error: the answer was lost");
  let calls = 0;
  for (const token of [1n, 2n]) {
    expect(await codeOf(recordedCall(place(), owner(token), "k", async () => ++calls))).toBe("TAPE_OUTCOME_UNKNOWN");
  }
  const observe = async () => outcome.inconclusive("the printer is off");
  expect(await codeOf(recordedCall(place(), owner(2n), "k", async () => ++calls, { observe }))).toBe(
    "TAPE_OUTCOME_UNKNOWN",
  );
  expect(calls).toBe(0);
});

it("completes an observed call without calling, and refuses the first owner", async () => {
  let answer = (_: string) => {};
  const late = codeOf(
    recordedCall(place(), owner(1n), "k", () => new Promise<string>((resolve) => (answer = resolve))),
  );
  await expect
    .poll(async () => (await store.read.value("default", "tape.call/k"))?.version, { timeout: 10_000 })
    .toBe(1);
  const observe = async () => outcome.confirmed("seen");
  expect(await recordedCall(place(), owner(2n), "k", async () => "acted", { observe })).toBe("seen");
  answer("late");
  expect(await late).toBe("TAPE_FENCED");
  expect(await recordedCall(place(), owner(3n), "k", async () => "acted")).toBe("seen");
});

it('calls after "absent" only once the send window has passed or it is final', async () => {
  await codeOf(recordedCall(place(), owner(1n), "k", lost, { sendWithin: "10s" }));
  const observe = async () => outcome.absent();
  let calls = 0;
  const call = async () => ++calls;
  await clock.elapse(9_999);
  expect(await codeOf(recordedCall(place(), owner(2n), "k", call, { observe }))).toBe("TAPE_OUTCOME_UNKNOWN");
  await clock.elapse(1);
  expect(await recordedCall(place(), owner(2n), "k", call, { observe })).toBe(1);
  await codeOf(recordedCall(place(), owner(2n), "j", lost, { sendWithin: "10s" }));
  const final = async () => outcome.absent({ final: true });
  expect(await recordedCall(place(), owner(3n), "j", call, { observe: final })).toBe(2);
});

it.each([new NotSent(), new DefiniteFailure("out of paper")])(
  "%s is certain: the next attempt calls at once",
  async (error) => {
    const refused = recordedCall(place(), owner(1n), "k", () => Promise.reject(error));
    await expect(refused).rejects.toBe(error);
    expect(await recordedCall(place(), owner(1n), "k", async () => "acted")).toBe("acted");
  },
);

it("refuses a holder that no longer trusts its lease before any claim", async () => {
  const assert = () => {
    throw new TapeError("TAPE_LEASE_LOST", "too late");
  };
  const result = recordedCall(place(), { ...owner(1n), assert }, "k", async () => "acted");
  expect(await codeOf(result)).toBe("TAPE_LEASE_LOST");
  expect(await store.read.value("default", "tape.call/k")).toBeUndefined();
});
