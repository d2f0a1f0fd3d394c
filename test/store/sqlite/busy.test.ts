import { spawn } from "node:child_process";
import { once } from "node:events";
import type { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Store } from "../../../src/store/contract/store.ts";
import { ManualClock } from "../../../testkit/clock.ts";
import { claimant, heldRun, request, step, tenant } from "../../../testkit/conformance/frame.ts";
import { everything } from "../../../testkit/conformance/holder.ts";
import { codeOf, until } from "../postgres/scene.ts";
import { type Place, placeForFile } from "./files.ts";

const busyMs = 300;
const lasting = claimant("holder", { ttlMs: 60_000 });
const byForce = {
  claimant: claimant("rival", { ttlMs: 60_000 }),
  expect: "any",
  by: "ann",
  auditReason: "it hangs",
} as const;

function granted(verdict: { ok: true } | { ok: false; error: Error }): void {
  if (!verdict.ok) throw verdict.error;
}

/** Another process is in the middle of its transaction and keeps the file locked. */
describe("the file is busy", () => {
  let place: Place;
  let clock: ManualClock;
  let store: Store;
  let neighbour: DatabaseSync;
  let run: Awaited<ReturnType<typeof heldRun>>;

  beforeEach(async () => {
    place = placeForFile();
    clock = new ManualClock();
    store = await place.open({ clock, busyMs });
    run = await heldRun(store, {}, lasting);
    neighbour = place.raw();
    neighbour.exec("begin immediate");
  });
  afterEach(() => place.close());

  const calls = {
    "a renewal": async () => granted((await store.claim.renew([{ fence: run.fence, progress: 1 }]))[0]!),
    "a takeover": async () => granted(await store.claim.acquire(tenant, request({ run: run.id }, byForce))),
    "an append": () => store.fenced.append(run.fence, { after: 1, records: [step(0)] }),
    "a new run": async () =>
      granted((await store.intake.createRuns(tenant, [{ id: "new", workflow: "w", input: 1 }]))[0]!),
  } as const;
  const names = Object.keys(calls) as (keyof typeof calls)[];

  it.each(names)("%s waits without blocking the event loop, and completes once the file is free", async (name) => {
    let code: string | undefined;
    const waiting = codeOf(calls[name]()).then((it) => {
      code = it;
    });
    // A blocking wait could not be interrupted by any of these ticks: the other process would never release the file.
    for (let turn = 0; turn < 5; turn++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      await clock.elapse(20);
      expect(code).toBeUndefined();
    }
    neighbour.exec("rollback");
    await clock.elapse(40);
    await waiting;
    expect(code).toBe("done");
  });

  it.each(names)("%s is rejected if the file stays busy, and nothing is written", async (name) => {
    const before = await everything(store); // readers do not wait
    const refused = codeOf(calls[name]());
    await clock.elapse(busyMs + 50);
    expect(await refused).toBe("TAPE_STORE_BUSY");
    neighbour.exec("rollback");
    await clock.elapse(100);
    expect(await everything(store)).toBe(before);
    const retry = codeOf(calls[name]());
    await clock.elapse(50);
    expect(await retry).toBe("done");
  });

  it("writes that arrive while it waits are committed together", async () => {
    const writes = Array.from({ length: 20 }, (_, k) => store.intake.putValue(tenant, `k${k}`, k, "must_create"));
    await clock.elapse(50);
    writes.push(store.intake.putValue(tenant, "late", 1, "must_create"));
    neighbour.exec("rollback");
    await clock.elapse(50);
    expect((await Promise.all(writes)).every(({ version }) => version === 1)).toBe(true);
  });
});

it("an otherwise idle process waits for its write", async () => {
  const place = placeForFile();
  await (await place.open()).close();
  const program = fileURLToPath(new URL("waiting-child.ts", import.meta.url));
  const child = spawn(process.execPath, [program, place.file], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const exit = once(child, "exit");
  try {
    await until(async () => output.includes("opened"), "the process does not open the file");
    const neighbour = place.raw();
    neighbour.exec("begin immediate");
    child.kill("SIGUSR2"); // now write
    await until(async () => output.includes("writing"), "the process does not write");
    await new Promise((resolve) => setTimeout(resolve, 60)); // it would have ended by now
    expect(child.exitCode).toBeNull();
    neighbour.exec("rollback");
    expect(await exit).toEqual([0, null]);
    expect(output).toContain("written 1");
  } finally {
    child.kill("SIGKILL");
    await place.close();
  }
});
