import { copyFileSync, existsSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ManualClock } from "../../../testkit/clock.ts";
import { acquired, claimant, heldRun, request, step, tenant } from "../../../testkit/conformance/frame.ts";
import { codeOf } from "../postgres/scene.ts";
import { type Place, placeForFile } from "./files.ts";

let place: Place;
let clock: ManualClock;
beforeEach(() => {
  place = placeForFile();
  clock = new ManualClock();
});
afterEach(() => place.close());

const lasting = claimant("holder", { ttlMs: 60_000 });
const byForce = { claimant: lasting, expect: "any", by: "ann", auditReason: "drill" } as const;

describe("a file restored from a backup", () => {
  const backup = () => `${place.file}.backup`;

  it("[INV-3] rejects its old holders, and after `restored` issues no token twice", async () => {
    let store = await place.open({ clock });
    const run = await heldRun(store, {}, lasting);
    const lead = { name: "lead" };
    const tokens = [(await acquired(store, request(lead, { claimant: lasting }))).fence.token];
    await store.fenced.append(run.fence, { after: 1, records: [step(0), step(1)] });
    await store.close();
    expect(existsSync(`${place.file}-wal`)).toBe(false); // everything is in the file
    copyFileSync(place.file, backup());

    store = await place.open({ clock });
    expect(
      (await store.fenced.append(run.fence, { after: 3, records: Array.from({ length: 6 }, (_, k) => step(2 + k)) }))
        .head,
    ).toBe(9);
    const lost = await acquired(store, request(lead, byForce));
    tokens.push(lost.fence.token, (await acquired(store, request(lead, byForce))).fence.token);
    await store.close();
    copyFileSync(backup(), place.file);

    store = await place.open({ clock });
    // No process has noticed yet. The same term, but the journal has another head; and a term that never existed.
    expect(await codeOf(store.fenced.append(run.fence, { after: 9, records: [step(8)] }))).toBe("TAPE_NOT_HEAD");
    expect(await codeOf(store.fenced.append(lost.fence, { after: 3, records: [step(8)] }))).toBe("TAPE_FENCED");
    const { epoch, ended } = await store.claim.restored("from the backup of tonight");
    expect([epoch, ended]).toEqual([1, 2]);
    expect(await codeOf(store.fenced.append(run.fence, { after: 3, records: [step(2)] }))).toBe("TAPE_FENCED");
    for (let k = 0; k < 3; k++) tokens.push((await acquired(store, request(lead, byForce))).fence.token);
    expect(new Set(tokens).size).toBe(tokens.length);
    expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)));
    expect((await store.read.settings()).epoch).toBe(1);
    const successor = await acquired(store, request({ run: run.id }, { claimant: lasting }));
    expect([successor.head, successor.fence.token > 1n << 40n]).toEqual([4, true]);
    const [first] = await store.read.terms(tenant, { run: run.id });
    expect(first?.endReason).toBe("superseded");
  });
});

describe("a new boot of the machine", () => {
  it("ends every term, because the lease clock has restarted", async () => {
    const before = await place.open({ clock });
    const run = await heldRun(before, {}, lasting);
    const lead = request({ name: "lead" }, { claimant: lasting });
    await acquired(before, lead);
    await clock.elapse(50_000); // they expire at 61 s of the old clock
    const other = request({ name: "lead" }, { claimant: claimant("rival") });
    expect(await before.claim.acquire(tenant, other)).toMatchObject({ ok: false });
    await before.close();

    clock.reboot("boot-2");
    const after = await place.open({ clock });
    expect((await after.read.lease(tenant, { name: "lead" }))?.state).toBe("EXPIRED");
    expect((await acquired(after, other)).fence.token).toBe(2n);
    const successor = await acquired(after, request({ run: run.id }, { claimant: lasting }));
    expect(await codeOf(after.fenced.append(run.fence, { after: 1, records: [step(0)] }))).toBe("TAPE_FENCED");
    // The new terms use the new clock, and a second process of the same boot ends nothing.
    const second = await place.open({ clock });
    expect(await second.claim.renew([{ fence: successor.fence, progress: 1 }])).toMatchObject([{ ok: true }]);
    expect(await second.claim.acquire(tenant, request({ name: "lead" }))).toMatchObject({ ok: false });
    expect((await second.read.terms(tenant, { name: "lead" })).map(({ endReason }) => endReason)).toEqual([
      "expired",
      undefined,
    ]);
  });
});

describe("records of a newer version", () => {
  it.each([
    ["a version", `update records set body = replace(body, '"v":1', '"v":2') where seq = 2 and journal > 1`],
    ["a kind", "update records set kind = 'step.undreamt' where seq = 2 and journal > 1"],
  ])("%s that we do not know is an error for every reader, never skipped", async (_, edit) => {
    const store = await place.open({ clock });
    const run = await heldRun(store, {}, lasting);
    await store.fenced.append(run.fence, { after: 1, records: [step(0)] });
    expect(place.raw().prepare(edit).run().changes).toBe(1);
    expect(await codeOf(store.read.journal(tenant, { run: run.id }))).toBe("TAPE_RECORD_NEWER");
    expect(await codeOf(store.read.feed(undefined))).toBe("TAPE_RECORD_NEWER");
    expect(await store.read.journal(tenant, { run: run.id }, { limit: 1 })).toHaveLength(1); // the records before it
  });
});
