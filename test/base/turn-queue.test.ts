import { describe, expect, it } from "vitest";
import { TurnQueue } from "../../src/base/turn-queue.ts";

interface Write {
  readonly tenant: string | undefined;
  readonly bytes: number;
  readonly name: string;
  readonly writes: number;
}
const write = (tenant: string | undefined, name: string, bytes = 1): Write => ({ tenant, name, bytes, writes: 1 });
const roomy = { pendingItems: 100_000, pendingBytes: 1_000_000 };
const namesOf = (writes: readonly Write[]): string[] => writes.map(({ name }) => name);

describe("what waits for its turn", () => {
  it("one tenant's is served in order of arrival", () => {
    const queue = new TurnQueue<Write>(roomy);
    for (let k = 0; k < 20_000; k++) queue.push(write("acme", String(k)));
    expect(namesOf(queue.drain())).toEqual(Array.from({ length: 20_000 }, (_, k) => String(k)));
    expect(queue.shift()).toBeUndefined();
  });

  it("another tenant's next write waits for one of a flood, not for all of it", () => {
    const queue = new TurnQueue<Write>(roomy);
    for (let k = 0; k < 10_000; k++) queue.push(write("acme", `flood ${k}`));
    queue.push(write("globex", "first"));
    queue.push(write("globex", "second"));
    queue.push(write(undefined, "the store's own"));
    const served = namesOf(Array.from({ length: 6 }, () => queue.shift()!));
    expect(served).toEqual(["flood 0", "first", "the store's own", "flood 1", "second", "flood 2"]);
  });

  it("no tenant is passed over, however few are served before more arrive", () => {
    const queue = new TurnQueue<Write>(roomy);
    const tenants = Array.from({ length: 50 }, (_, k) => `tenant ${k}`);
    const served = new Map<string | undefined, number>();
    for (let round = 0; round < 100; round++) {
      for (const tenant of tenants) queue.push(write(tenant, "w"));
      for (let k = 0; k < 10; k++) {
        const { tenant } = queue.shift()!;
        served.set(tenant, (served.get(tenant) ?? 0) + 1);
      }
    }
    expect(tenants.map((tenant) => served.get(tenant))).toEqual(tenants.map(() => 20));
    expect(queue.length).toBe(50 * 100 - 1_000);
  });

  it("a flood that has filled it is refused; who has little waiting still gets in, up to a bound", () => {
    const queue = new TurnQueue<Write>({ pendingItems: 80, pendingBytes: 800 });
    const fill = (tenant: string): number => {
      let taken = 0;
      for (; queue.hasRoom(tenant, 1); taken++) queue.push(write(tenant, "w"));
      return taken;
    };
    expect(fill("acme")).toBe(80);
    expect(fill("globex")).toBe(10);
    expect(fill("initech")).toBe(0);
    queue.drain();
    expect(fill("acme")).toBe(80);
  });

  it("the same holds for bytes", () => {
    const queue = new TurnQueue<Write>({ pendingItems: 80, pendingBytes: 800 });
    queue.push(write("acme", "large", 790));
    expect(queue.hasRoom("acme", 20)).toBe(false);
    expect(queue.hasRoom("globex", 20)).toBe(true);
    expect(queue.hasRoom("globex", 101)).toBe(false);
    queue.shift();
    expect(queue.hasRoom("acme", 800)).toBe(true);
  });

  it("one tenant's first is taken out of turn, and that was its turn", () => {
    const queue = new TurnQueue<Write>(roomy);
    for (const name of ["a1", "a2", "a3"]) queue.push(write("acme", name));
    for (const name of ["g1", "g2"]) queue.push(write("globex", name));
    expect(queue.shiftOf("acme")!.name).toBe("a1");
    expect(queue.shiftOf("initech")).toBeUndefined();
    expect(namesOf(queue.drain())).toEqual(["g1", "a2", "g2", "a3"]);
    expect(queue.shiftOf("acme")).toBeUndefined();
  });

  it("what is put back is the first of its tenant's again, in its order, and counts as before", () => {
    const queue = new TurnQueue<Write>({ pendingItems: 5, pendingBytes: 5 });
    for (const name of ["a1", "a2", "a3"]) queue.push(write("acme", name));
    for (const name of ["g1", "g2"]) queue.push(write("globex", name));
    const taken = Array.from({ length: 4 }, () => queue.shift()!);
    expect(namesOf(taken)).toEqual(["a1", "g1", "a2", "g2"]);
    queue.putBack(taken);
    expect(queue.length).toBe(5);
    expect(queue.hasRoom("acme", 1)).toBe(false);
    expect(queue.takeAll(10)).toBeUndefined();
    expect(namesOf(queue.drain())).toEqual(["a1", "g1", "a2", "g2", "a3"]);
    expect(queue.hasRoom("acme", 5)).toBe(true);
  });

  it("what is put back is served with everything, where all of it is one tenant's", () => {
    const queue = new TurnQueue<Write>(roomy);
    for (const name of ["a1", "a2", "a3"]) queue.push(write("acme", name));
    const all = queue.takeAll(10)!;
    queue.push(write("acme", "a4"));
    queue.putBack(all.slice(1));
    expect(queue.takeAll(2)).toBeUndefined();
    expect(namesOf(queue.takeAll(3)!)).toEqual(["a2", "a3", "a4"]);
    expect(queue.length).toBe(0);
  });

  it("takes everything at once only within the bounds", () => {
    const queue = new TurnQueue<Write>(roomy);
    for (const name of ["a1", "a2"]) queue.push(write("acme", name, 50));
    expect(queue.takeAll(1)).toBeUndefined();
    expect(queue.takeAll(2, 99)).toBeUndefined();
    expect(namesOf(queue.takeAll(2, 100)!)).toEqual(["a1", "a2"]);
  });
});
