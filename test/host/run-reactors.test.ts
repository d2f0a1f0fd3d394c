import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type ReactorsByName, reactorSpecs } from "../../src/host/reactor-options.ts";
import { runReactors } from "../../src/host/run-reactors.ts";
import { Tape } from "../../src/host/tape.ts";
import type { ReactorContext } from "../../src/reactor/custom.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";

const hello = workflow("hello", async (tape, name: string) => tape.step("greet", () => `hello ${name}`));
const runner = createRunner({ workflows: [hello] });

function file(): string {
  const folder = mkdtempSync(join(tmpdir(), "tape-reactors-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return `sqlite:${join(folder, "tape.db")}`;
}

describe("runReactors", () => {
  it("drives the runs of a store, named by its URL, until it is stopped", async () => {
    const url = file();
    await using app = await Tape.open({ store: url, runner, work: false });
    const run = await app.start(hello, "Ada");
    const reactors = await runReactors(url, { runner });
    expect(await run.result()).toBe("hello Ada");
    expect(reactors.names).toEqual(["recovery", "reconciler", "outbox", "timers", "compensation"]);
    expect(reactors.stats.recovery).toMatchObject({ found: 1 });
    await reactors.stop();
    await reactors.stop();
    expect(await app.leases.list({ held: true })).toEqual([]);
    await expect(reactors.app.store.read.now()).rejects.toThrow(/TAPE_STORE_CLOSED/);
  });

  it("runs on the store and the tenant of an app, which stays open", async () => {
    await using app = await Tape.open({ store: "memory:", runner, tenant: "acme", work: false });
    const run = await app.start(hello, "Bob");
    {
      await using reactors = await runReactors(app, { runner, only: ["recovery"] });
      expect(reactors.names).toEqual(["recovery"]);
      expect(await run.result()).toBe("hello Bob");
    }
    expect(await (await app.run(run.id)).status()).toBe("COMPLETED");
  });

  it("runs your own reactors, which need no runner", async () => {
    await using app = await Tape.open({ store: "memory:", runner, work: false });
    const calls: string[] = [];
    const reap_aged_obligations = {
      handler: async (own: Tape, { name }: ReactorContext) => {
        calls.push(
          `${name} ${own.tenant} ${(await own.obligations.list({ status: "PENDING", minAge: "24h" })).length}`,
        );
      },
    };
    await using reactors = await runReactors(app, {
      only: ["reap_aged_obligations", "timers"],
      reactors: { reap_aged_obligations },
    });
    await vi.waitFor(() => expect(calls.length).toBeGreaterThan(0));
    expect(calls).toEqual(["reap_aged_obligations default 0"]);
    expect(reactors.names).toEqual(["timers", "reap_aged_obligations"]);
    expect((await app.leases.explain("reactor reap_aged_obligations"))?.reactor).toBeDefined();
  });

  it.each<[object, RegExp]>([
    [{}, /recovery needs your runner/],
    [{ runner, only: ["recvery"] }, /unknown reactor recvery; did you mean recovery\?/],
    [{ runner, only: [] }, /only is a list of reactors/],
    [{ runner, ony: ["timers"] }, /has no option ony; did you mean only\?/],
    [{ runner: {} }, /runner is what createRunner/],
    [{ runner, drain: "soon" }, /drain/],
    [
      { runner, reactors: { recovery: false, reconciler: false, outbox: false, timers: false, compensation: false } },
      /all reactors are disabled/,
    ],
  ])("refuses %o before it opens a store", async (options, message) => {
    await expect(runReactors("postgres://127.0.0.1:1/none", options)).rejects.toThrow(message);
  });

  it("refuses anything but a URL or an app", async () => {
    await expect(runReactors({} as Tape, { runner })).rejects.toThrow(/a store's URL or an app/);
  });
});

describe("Tape.open({ reactors })", () => {
  it("runs a reactor of your own beside the built-in ones", async () => {
    const tenants: string[] = [];
    await using app = await Tape.open({
      store: "memory:",
      runner,
      reactors: { sweep: { handler: (own) => void tenants.push(own.tenant), interval: "1h" }, outbox: false },
    });
    await vi.waitFor(() => expect(tenants).toEqual(["default"]));
    expect(await app.call(hello, "Cy")).toBe("hello Cy");
    expect(tenants).toEqual(["default"]);
  });

  it("drives nothing without recovery", async () => {
    await using app = await Tape.open({ store: "memory:", runner, reactors: { recovery: false } });
    const run = await app.start(hello, "Di");
    expect(await run.status()).toBe("RUNNABLE");
    await using _ = await runReactors(app, { runner, only: ["recovery"] });
    expect(await run.result()).toBe("hello Di");
  });

  it.each<[ReactorsByName<Tape>, RegExp]>([
    [{ recvery: { batch: 5 } }, /reactor recvery has no handler; did you mean recovery\?/],
    [{ outbox: { batc: 5 } as object }, /has no option batc; did you mean batch\?/],
    [{ outbox: { batch: 0 } }, /reactors\.outbox\.batch: /],
    [{ outbox: { concurrency: Number.NaN } }, /reactors\.outbox\.concurrency: /],
    [{ outbox: { leaseTtl: "10 mins" as never } }, /leaseTtl/],
    [{ outbox: { leaseTtl: "10s", heartbeat: "9s" } }, /reactors\.outbox\.heartbeat: .*more than half/],
    [{ outbox: { takeover: { base: "9s", cap: "5s" } } }, /reactors\.outbox\.takeover\.base: .*more than cap_ms/],
    [{ outbox: { takeover: { bas: "9s" } as object } }, /did you mean base\?/],
    [{ "Reap!": { handler: () => 1 } }, /a reactor name must consist of/],
    [{ "a-b": { handler: () => 1 }, a_b: { handler: () => 1 } }, /have the same variables/],
    [{ mine: { handler: "./reap.ts#reapOnce" as never } }, /handler is a function/],
    [{ mine: { handler: () => 1, lease_attempts: 5 } as object }, /always unlimited/],
  ])("refuses %o", async (reactors, message) => {
    await expect(Tape.open({ store: "memory:", runner, reactors })).rejects.toThrow(message);
  });

  it("refuses reactors in a process that does not work", async () => {
    await expect(
      Tape.open({ store: "memory:", runner, work: false, reactors: { outbox: { batch: 5 } } }),
    ).rejects.toThrow(/leave work out/);
  });

  it("keeps the app's lease and concurrency where an option says nothing", () => {
    const [recovery, , outbox, timers] = reactorSpecs<Tape | undefined>(
      "x",
      { recovery: { interval: "10s" }, outbox: { takeover: { base: "2s" }, leaseTtl: "9s" } },
      () => undefined,
      { ttlMs: 12_000, concurrency: 7 },
    );
    expect(recovery?.settings).toMatchObject({ lease_ttl_s: 12, concurrency: 7, interval_ms: 10_000 });
    expect(outbox?.settings).toMatchObject({
      lease_ttl_s: 9,
      concurrency: 50,
      takeover: { base_ms: 2_000, cap_ms: 10_000 },
    });
    expect(timers).toEqual({ name: "timers" });
  });
});
