import { describe, expect, it, onTestFinished } from "vitest";
import { Turns } from "../../src/server/turns.ts";
import { ManualClock, settled } from "../../testkit/clock.ts";
import { giveTokens, tokenOf } from "./scene.ts";
import { ask, type Stage, stage } from "./stage.ts";

/** Calls that take `ms` of the event loop each; `started` lists their tenants in the order in which they started. */
function callsOn(clock: ManualClock) {
  const turns = new Turns(clock);
  const started: string[] = [];
  const call = async (tenant: string, ms: number): Promise<void> => {
    const turn = turns.next(tenant);
    if (turn !== undefined) await turn;
    started.push(tenant);
    clock.stall(ms);
  };
  return { turns, started, call };
}

describe("turns of the event loop", () => {
  it("never delay a tenant that is alone", () => {
    const clock = new ManualClock();
    const turns = new Turns(clock);
    for (let k = 0; k < 100; k++) {
      expect(turns.next("acme")).toBeUndefined();
      clock.stall(50);
    }
    expect(turns.shared).toBe(false);
  });

  it("make a call wait for one call of another tenant, not for all", async () => {
    const clock = new ManualClock();
    const { started, call } = callsOn(clock);
    await call("globex", 0);
    await settled();
    const flood = Array.from({ length: 50 }, () => call("acme", 20));
    const late = call("globex", 0);
    await late;
    expect(started.filter((tenant) => tenant === "acme").length).toBeLessThanOrEqual(1);
    while (started.length < 52) await clock.elapse(100);
    await Promise.all(flood);
  });

  it("make a tenant that held the loop pause for longer than it held it", async () => {
    const clock = new ManualClock();
    const { turns, started, call } = callsOn(clock);
    await call("globex", 0);
    await call("acme", 20);
    await settled();
    const next = call("acme", 20);
    for (let k = 0; k < 2; k++) {
      await clock.elapse(10);
      await call("globex", 0); // those that took little begin at once
      await settled();
    }
    expect(started).toEqual(["globex", "acme", "globex", "globex"]);
    await clock.elapse(29);
    await next;
    expect(started.at(-1)).toBe("acme");
    expect(turns.shared).toBe(true);
  });

  it("do not pause a tenant that takes little", async () => {
    const clock = new ManualClock();
    const turns = new Turns(clock);
    for (let k = 0; k < 100; k++) {
      for (const tenant of ["acme", "globex"]) {
        expect(turns.next(tenant), `${k}`).toBeUndefined();
        clock.stall(0.2);
        await settled(1);
      }
      clock.stall(1);
    }
  });

  it("resume a paused tenant when the others are done", async () => {
    const clock = new ManualClock();
    const { turns, started, call } = callsOn(clock);
    await call("globex", 0);
    const since = clock.mono();
    await call("acme", 90); // counts as fifty
    await settled();
    const next = call("acme", 0);
    await clock.elapse(9);
    expect(started).toEqual(["globex", "acme"]);
    await clock.elapse(1);
    await next;
    expect(clock.mono() - since).toBe(100);
    expect(started).toEqual(["globex", "acme", "acme"]);
    expect(turns.next("acme")).toBeUndefined();
  });

  it("process a batch at once when alone, in slices among others", async () => {
    const clock = new ManualClock();
    const turns = new Turns(clock);
    const items = Array.from({ length: 100 }, (_, k) => k);
    const sizes: number[] = [];
    const double = async (slice: readonly number[]) => {
      sizes.push(slice.length);
      return slice.map((k) => 2 * k);
    };
    await turns.next("acme");
    expect(await turns.each("acme", items, double)).toEqual(items.map((k) => 2 * k));
    expect(sizes.splice(0)).toEqual([100]);
    await turns.next("globex");
    const sliced = turns.each("acme", items, double);
    await clock.elapse(0);
    expect(sizes).toEqual([32, 32]); // they have used up what needs no rest
    await clock.elapse(12);
    expect(await sliced).toEqual(items.map((k) => 2 * k));
    expect(sizes).toEqual([32, 32, 32, 4]);
    expect(await turns.each("acme", [], double)).toEqual([]);
  });
});

describe("a server with several tenants", { timeout: 300_000 }, () => {
  const records = 600;

  interface OpenedServer extends Stage {
    as(tenant: string): string;
    /** Lets time pass until the call is answered, as much as it needs and however slow the machine is. */
    during<T>(call: Promise<T>): Promise<T>;
  }

  async function opened(clock: ManualClock | undefined = undefined): Promise<OpenedServer> {
    const on = await stage({ credentials: "required", url: "sqlite::memory:", ...(clock && { clock }) });
    onTestFinished(() => on.close());
    const during: OpenedServer["during"] = async (call) => {
      let pending = true;
      const over = call.finally(() => {
        pending = false;
      });
      while (pending) await clock!.elapse(1);
      return over;
    };
    for (const tenant of ["acme", "globex"]) await giveTokens(on.store, tenant);
    const specs = Array.from({ length: records }, (_, k) => ({ id: `run-${1_000 + k}`, workflow: "w", input: k }));
    for (let k = 0; k < records; k += 100) await on.store.intake.createRuns("acme", specs.slice(k, k + 100));
    return { ...on, during, as: (tenant) => tokenOf(tenant, "worker") };
  }

  it("answers a call before a flood of pages that came first", async () => {
    const { server, as } = await opened();
    const answered: string[] = [];
    const call = async (tenant: string, url: string): Promise<void> => {
      expect((await ask(server.exchange, "GET", url, { token: as(tenant) })).status).toBe(200);
      answered.push(tenant);
    };
    await call("globex", "/v1/runs");
    await call("acme", "/v1/runs");
    answered.length = 0;
    const flood = Array.from({ length: 40 }, () => call("acme", "/v1/runs?limit=600"));
    await call("globex", "/v1/runs");
    expect(answered.length).toBeLessThan(10);
    await Promise.all(flood);
  });

  it("shortens pages of the feed while others call, without loss", async () => {
    const { server, as, during } = await opened(new ManualClock());
    const seen: string[] = [];
    let cursor = "";
    for (let more: boolean | undefined = true; more === true; ) {
      await during(ask(server.exchange, "GET", "/v1/runs", { token: as("globex") }));
      const url = `/v1/feed?limit=1000${cursor}`;
      const { json } = await during(ask(server.exchange, "GET", url, { token: as("acme") }));
      const page = json as { records: { data: { id?: string } }[]; cursor: string; more?: boolean };
      expect(page.records.length).toBeLessThanOrEqual(64);
      seen.push(...page.records.map(({ data }) => String(data.id)));
      cursor = `&cursor=${encodeURIComponent(page.cursor)}`;
      more = page.more;
    }
    expect(new Set(seen).size).toBe(records);
  });

  it("writes a long list in slices, with the same content", async () => {
    const { server, as } = await opened();
    const list = async () => (await ask(server.exchange, "GET", "/v1/runs?limit=599", { token: as("acme") })).json;
    const alone = await list();
    await ask(server.exchange, "GET", "/v1/runs", { token: as("globex") });
    expect(await list()).toEqual(alone);
    expect(alone).toMatchObject({ more: true });
    expect((alone as { runs: unknown[] }).runs).toHaveLength(599);
  });

  it("returns the results of many starts in order", async () => {
    const { server, as } = await opened();
    await ask(server.exchange, "GET", "/v1/runs", { token: as("globex") });
    await ask(server.exchange, "GET", "/v1/runs", { token: as("acme") });
    const spec = (id: string) => ({ id, workflow: "w", input: 0 });
    const calls = [
      { specs: Array.from({ length: 70 }, (_, k) => spec(k % 2 === 0 ? `new-${k}` : `run-${1_000 + k}`)) },
      { specs: [] },
      { specs: [spec("last")] },
    ];
    const { json } = await ask(server.exchange, "POST", "/v1/store/create", { token: as("acme"), body: { calls } });
    const verdicts = (json as { calls: { results: { ok: boolean; fresh?: boolean }[] }[] }).calls;
    expect(verdicts.map((call) => call.results.length)).toEqual([70, 0, 1]);
    expect(verdicts[2]!.results[0]).toMatchObject({ ok: true, fresh: true });
    for (const [k, verdict] of verdicts[0]!.results.entries()) {
      expect(verdict, `${k}`).toMatchObject(k % 2 === 0 ? { ok: true, fresh: true } : { ok: false });
    }
  });
});
