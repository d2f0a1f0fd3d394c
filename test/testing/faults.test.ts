import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isTapeError } from "../../src/model/errors.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { ManualClock, settled } from "../../testkit/clock.ts";
import { type Fault, faultyStore } from "../../testkit/faults.ts";

let store: Store;
beforeEach(async () => {
  store = await openSqlite({ file: ":memory:", clock: new ManualClock() });
});
afterEach(() => store.close());

const put = (to: Store) => to.intake.putValue("acme", "k", 1, "unconditional");
const version = async () => (await store.read.value("acme", "k"))?.version ?? 0;
const once = (fault: Fault) => faultyStore(store, ({ n }) => (n === 1 ? fault : undefined));

describe("a faulty store", () => {
  it("fails before the call, with a code that means nothing was written", async () => {
    const faulty = once("before");
    await expect(put(faulty.store)).rejects.toSatisfy((error) => isTapeError(error, "TAPE_STORE_UNREACHABLE"));
    expect(await version()).toBe(0);
    await put(faulty.store);
    expect(await version()).toBe(1);
  });

  it("loses the response of a call that was applied", async () => {
    const faulty = once("after");
    await expect(put(faulty.store)).rejects.toSatisfy((error) => isTapeError(error, "TAPE_OUTCOME_UNKNOWN"));
    expect(await version()).toBe(1);
  });

  it("returns the store's own refusal instead of losing the response", async () => {
    const faulty = once("after");
    const refused = faulty.store.intake.deleteValue("acme", "k", 7);
    await expect(refused).rejects.toSatisfy((error) => isTapeError(error, "TAPE_VERSION_CONFLICT"));
  });

  it("delays a call until it is released, then applies it", async () => {
    const faulty = once("hang");
    const late = put(faulty.store);
    expect(await faulty.hung).toEqual({ n: 1, group: "intake", method: "putValue" });
    await settled();
    expect(await version()).toBe(0);
    await put(faulty.store);
    faulty.release();
    expect((await late).version).toBe(2);
  });

  it("records every call of every group with its fault", async () => {
    const seen: string[] = [];
    const faulty = faultyStore(store, ({ group, method }) => {
      seen.push(`${group}.${method}`);
      return "before";
    });
    for (const group of ["intake", "claim", "fenced", "read"] as const) {
      for (const method of Object.keys(store[group])) {
        const call: unknown = Reflect.get(faulty.store[group], method);
        expect(typeof call).toBe("function");
        if (typeof call === "function") await expect(Reflect.apply(call, undefined, [])).rejects.toThrow("injected");
      }
    }
    const methods = (["intake", "claim", "fenced", "read"] as const).flatMap((g) => Object.keys(store[g]));
    expect(seen).toHaveLength(methods.length);
    expect(faulty.calls.every(({ n, fault }, k) => n === k + 1 && fault === "before")).toBe(true);
  });
});
