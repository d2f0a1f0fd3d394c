import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { seededRandom } from "../../../src/base/random.ts";
import { defaultLimits } from "../../../src/model/limits.ts";
import { Committer } from "../../../src/store/sqlite/committer.ts";
import { connect, openDatabase } from "../../../src/store/sqlite/database.ts";
import { ManualClock } from "../../../testkit/clock.ts";
import { playCrowd } from "./crowd.ts";
import { type Place, placeForFile } from "./files.ts";

/** Time passes while a write is executed, too, and no timer is called meanwhile. */
class WorkClock extends ManualClock {
  #workedMs = 0;

  work(ms: number): void {
    this.#workedMs += ms;
  }

  override mono(): number {
    return super.mono() + this.#workedMs;
  }
}

describe("writers of one file", () => {
  let place: Place;
  let clock: WorkClock;
  let committer: Committer;
  /** The group of each write, in the order of execution. */
  let groups: number[];

  beforeEach(async () => {
    place = placeForFile();
    await (await place.open()).close();
    clock = new WorkClock();
    groups = [];
    committer = new Committer({
      connect: () => connect({ file: place.file, exclusive: false, durable: false, open: openDatabase }),
      volatile: false,
      clock,
      random: seededRandom(7),
      limits: defaultLimits,
      busyMs: 1_000,
      times: () => ({ at: 1, now: 1, steady: 1 }),
      forget: () => {},
    });
    await write("acme", 0); // from now on it knows the file's version
    groups.length = 0;
  });
  afterEach(async () => {
    await committer.close();
    await place.close();
  });

  const write = (tenant: string, ms: number): Promise<void> =>
    committer.submit(tenant, () => {
      clock.work(ms);
      groups.push(committer.commits);
    });
  const sizes = (): number[] => [...Map.groupBy(groups, (group) => group).values()].map((group) => group.length);
  /** Another process writes. */
  const foreign = (): void => place.raw().exec("create table if not exists n (x); insert into n values (1)");
  const flood = async (ms: number): Promise<void> => {
    const written = Promise.all(Array.from({ length: 12 }, () => write("acme", 2)));
    await clock.elapse(ms);
    await written;
  };

  it("a process alone on the file writes everything at once and never rests", async () => {
    await flood(0);
    expect(sizes()).toEqual([12]);
    await write("acme", 2);
    expect(sizes()).toEqual([12, 1]);
  });

  it("after seeing another commit it keeps its transactions short and rests as long after each", async () => {
    foreign();
    const written = Promise.all(Array.from({ length: 12 }, () => write("acme", 2)));
    for (const done of [3, 6, 6, 9, 9, 12]) {
      await clock.elapse(3); // half of its rest
      expect(groups.length).toBe(done);
      foreign(); // the other one uses the rest
    }
    await written;
    expect(sizes()).toEqual([3, 3, 3, 3]);
  });

  it("rests that no other process uses become shorter, until one writes again", async () => {
    foreign();
    const rests: number[] = [];
    const one = async (): Promise<void> => {
      const before = clock.mono();
      const written = write("acme", 4);
      while (groups.length === rests.length) await clock.elapse(0.25);
      await written;
      rests.push(clock.mono() - before - 4);
    };
    for (let k = 0; k < 12; k++) await one();
    expect(rests[1]).toBeGreaterThan(3);
    expect(rests.at(-1)).toBeLessThanOrEqual(0.5); // a sixteenth of the time that it held the file
    foreign();
    await one();
    await one();
    expect(rests.at(-1)).toBeGreaterThan(3);
  });

  it("the file is free while it rests", async () => {
    foreign();
    const written = Promise.all([write("acme", 6), write("acme", 6)]);
    await clock.elapse(3);
    const neighbour = place.raw();
    neighbour.exec("begin immediate");
    await clock.elapse(50);
    expect(groups.length).toBe(1);
    neighbour.exec("commit");
    await clock.elapse(20);
    await written;
    expect(groups.length).toBe(2);
  });

  it("a process that writes little does not rest", async () => {
    foreign();
    for (let k = 0; k < 10; k++) await write("acme", 0.5);
    expect(groups.length).toBe(10);
  });

  it("after a second without other writers it is alone again", async () => {
    foreign();
    await write("acme", 0);
    groups.length = 0;
    await clock.elapse(1_000);
    await flood(0);
    expect(sizes()).toEqual([12]);
  });

  it("it rests longer the more often it finds the file busy afterwards", async () => {
    const neighbour = place.raw();
    /** How long it rests after a write of 4 ms. */
    const rest = async (busy: boolean): Promise<number> => {
      if (busy) neighbour.exec("begin immediate");
      else foreign();
      const written = write("acme", 4);
      await clock.elapse(1);
      if (busy) neighbour.exec("commit");
      await clock.elapse(8);
      await written;
      const next = write("acme", 0).then(() => clock.mono());
      const from = clock.mono();
      await clock.elapse(100);
      return (await next) - from;
    };
    const rests: number[] = [];
    for (const busy of [false, true, true, true, true, true, true, true, true, true, true, true, true, true]) {
      rests.push(await rest(busy));
    }
    expect(rests[0]).toBe(0); // its 4 ms were over before it had anything to write
    expect(rests.at(-1)).toBeGreaterThan(15); // eight times as long, minus the time that had passed
    for (let k = 0; k < 12; k++) rests.push(await rest(false));
    expect(rests.at(-1)).toBe(0);
  });

  it("tenants of one process take turns, and none waits for a long transaction of another", async () => {
    const order: string[] = [];
    const of = (tenant: string): Promise<void> =>
      committer.submit(tenant, () => {
        clock.work(2);
        order.push(tenant);
        groups.push(committer.commits);
      });
    await of("globex");
    groups.length = 0;
    order.length = 0;
    const flooded = Array.from({ length: 9 }, () => of("acme"));
    await Promise.all([...flooded, of("globex")]);
    expect(order.slice(0, 3)).toEqual(["acme", "globex", "acme"]);
    expect(sizes()).toEqual([3, 3, 3, 1]);
  });
});

describe("a crowd on one file", () => {
  const light = { runs: 2 } as const;
  for (const flushMs of [1, 3, 10]) {
    for (const floods of [1, 5]) {
      it(`${floods} that write without a pause, ${flushMs} ms a flush: others' runs take less than twice as long`, () => {
        const quiet = playCrowd({ ...light, flushMs, floods: 0 });
        const crowded = playCrowd({ ...light, flushMs, floods });
        expect(crowded.p50 / quiet.p50).toBeLessThan(2);
        expect(crowded.p99 / quiet.p99).toBeLessThan(2);
        expect(crowded.flooded).toBeGreaterThan(1_000); // the rest is theirs
      });
    }
  }
});
