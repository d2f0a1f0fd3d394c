import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { noRunner, untilAborted } from "./stage.ts";

const name = "sweeper";
const stores: Record<string, () => Promise<string>> = {
  async sqlite() {
    const folder = await mkdtemp(join(tmpdir(), "tape-singleton-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    return `sqlite:${join(folder, "tape.db")}`;
  },
  async postgres14() {
    const url = await freshDatabase(inject("postgres14"));
    onTestFinished(() => dropDatabase(url));
    return url;
  },
  async postgres18() {
    const url = await freshDatabase(inject("postgres18"));
    onTestFinished(() => dropDatabase(url));
    return url;
  },
};

/** Singletons on real stores in real time. Each app has its own handle. */
describe.each(Object.entries(stores))("on %s", (_, storeOf) => {
  const pair = async (): Promise<[Tape, Tape]> => {
    const store = await storeOf();
    const apps = await Promise.all([0, 1].map(() => Tape.open({ store, runner: noRunner, work: false })));
    onTestFinished(async () => void (await Promise.all(apps.map((app) => app.close()))));
    return [apps[0]!, apps[1]!];
  };
  // Neither the TTL nor a poll passes within the test's time, so only a wake hint can make a standby lead.
  const patient = { ttl: "120s", poll: "120s" } as const;
  const wait = ({ abortSignal }: { abortSignal: AbortSignal }) => untilAborted(abortSignal);

  it("an app that closes hands over: the standby gets the wake hint, although the other app closes its store right after", async () => {
    const [a, b] = await pair();
    const first = await a.singleton(name, wait, patient);
    await expect.poll(() => first.state, { timeout: 10_000 }).toBe("holder");
    const second = await b.singleton(name, wait, patient);
    await expect.poll(async () => (await b.leases.explain(name))?.state, { timeout: 10_000 }).toBe("HELD");
    expect(second.state).toBe("standby");
    await a.close();
    await expect.poll(() => second.state, { timeout: 10_000 }).toBe("holder");
    expect((await b.leases.history(name)).map(({ startReason, endReason }) => [startReason, endReason])).toEqual([
      ["start", "drained"],
      ["release", undefined],
    ]);
  });

  it("of five apps that start together one leads, and only one works at a time while each in turn leaves", async () => {
    const store = await storeOf();
    const apps = await Promise.all(
      Array.from({ length: 5 }, () => Tape.open({ store, runner: noRunner, work: false })),
    );
    onTestFinished(async () => void (await Promise.all(apps.map((app) => app.close()))));
    let acting = 0;
    let maxActing = 0;
    const tokens: bigint[] = [];
    const body = async ({ abortSignal, token }: { abortSignal: AbortSignal; token: bigint }) => {
      tokens.push(token);
      maxActing = Math.max(maxActing, ++acting);
      await untilAborted(abortSignal);
      acting--;
    };
    const running = await Promise.all(apps.map((app) => app.singleton(name, body, { ...patient, poll: "1s" })));
    for (let left = 5; left > 0; left--) {
      await expect.poll(() => running.filter(({ state }) => state === "holder").length, { timeout: 10_000 }).toBe(1);
      await running.find(({ state }) => state === "holder")!.stop();
    }
    expect(maxActing).toBe(1);
    expect(tokens).toHaveLength(5);
    expect([...tokens].sort((x, y) => Number(x - y))).toEqual(tokens); // tokens only increase
  });

  it("a pause by another process stops the body without waiting for a heartbeat, and no process leads", async () => {
    const [a, b] = await pair();
    let aborted = false;
    const body = async ({ abortSignal }: { abortSignal: AbortSignal }) => {
      await untilAborted(abortSignal);
      aborted = true;
    };
    const singleton = await a.singleton(name, body, patient); // the next heartbeat is 40 s away
    await expect.poll(() => singleton.state, { timeout: 10_000 }).toBe("holder");
    await b.leases.pause(name, { reason: "maintenance" });
    await expect.poll(() => aborted, { timeout: 10_000 }).toBe(true);
    await expect(b.leases.tryAcquire(name)).rejects.toThrow("TAPE_LEASE_PAUSED");
    await b.leases.resume(name, { reason: "done" });
    await expect.poll(() => singleton.state, { timeout: 10_000 }).toBe("holder");
    const story = (await b.leases.history(name)).map(({ endReason, auditReason }) => [endReason, auditReason]);
    expect(story).toEqual([
      ["manual", undefined],
      ["manual", "maintenance"],
      ["manual", "done"],
      [undefined, undefined],
    ]);
  });
});
