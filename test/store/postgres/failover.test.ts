import { execFileSync } from "node:child_process";
import { chownSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { guardPostgres } from "../../../src/guard/postgres.ts";
import type { Term } from "../../../src/model/lease.ts";
import type { Store } from "../../../src/store/contract/store.ts";
import { Connections } from "../../../src/store/postgres/connections.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { parsePostgresUrl } from "../../../src/store/postgres/url.ts";
import { acquired, claimant, heldRun, request, spec, step, tenant } from "../../../testkit/conformance/frame.ts";
import { freshDatabase } from "../../postgres/database.ts";
import { type PostgresServer, startPostgres } from "../../postgres/server.ts";
import { adminOf, codeOf, taking, until } from "./scene.ts";

/** A separate server for what a shared one cannot do: lose commits, in a crash or by a promotion. */
let server: PostgresServer;
let folder: string;
let address: string;
let url: string;

beforeAll(async () => {
  server = await startPostgres({ major: 18, settings: { fsync: "off", full_page_writes: "off" } });
  address = await freshDatabase(server.url);
  url = `${address}?accept_loss=true&transaction_bound_ms=600`; // how long a call retries before it reports that there is no primary
  const admin = await adminOf(address);
  folder = Object.values((await admin.query("show data_directory")).rows[0] as object)[0] as string;
  await admin.end();
});
afterAll(async () => {
  rmSync(`${folder}-behind`, { recursive: true, force: true });
  await server.stop();
});

/** Changes the data while no server runs on it. */
async function whileStopped(work: () => void): Promise<void> {
  const { pid } = server;
  process.kill(pid, "SIGINT");
  await until(async () => !running(pid), "the server does not stop");
  work();
  await server.restart();
}

function running(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const copy = (from: string, to: string) => execFileSync("cp", ["-a", from, to]);
const lasting = { claimant: claimant(undefined, { ttlMs: 60_000 }) };
const byForce = { ...lasting, expect: "any", by: "ann", auditReason: "drill" } as const;

async function created(store: Store, count: number): Promise<number[]> {
  const verdicts = await store.intake.createRuns(
    tenant,
    Array.from({ length: count }, () => spec()),
  );
  return verdicts.map((verdict) => {
    if (!verdict.ok) throw verdict.error;
    return verdict.journal;
  });
}

it("rejects a server that loses commits in a crash, unless that is accepted explicitly, with a warning", async () => {
  const refusal = await openPostgres({ url: address }).catch((error: unknown) => error);
  expect(refusal).toMatchObject({
    code: "TAPE_STORE_NOT_DURABLE",
    message: expect.stringMatching(/fsync=off, full_page_writes=off/),
    details: { settings: ["fsync", "full_page_writes"] },
  });
  const logged: unknown[] = [];
  const store = await openPostgres({ url, log: (level, event) => logged.push([level, event]) });
  expect(logged).toEqual([["warn", "store.not_durable"]]);
  expect(await store.read.settings()).toMatchObject({ durable: false, facts: { fsync: "off" } });
  await store.close();
});

/**
 * A standby that lags behind is promoted at the primary's address: acknowledged commits are lost, and with them issued
 * tokens and journal numbers. None may be issued again.
 */
it("a promotion that lost commits raises the epoch, fences old holders and issues nothing twice", async () => {
  const store = await openPostgres({ url });
  const lead = { name: "lead" };
  const first = await acquired(store, request(lead, lasting));
  const spare = await acquired(store, request({ name: "spare" }, lasting));
  const run = await heldRun(store, {}, lasting.claimant);
  await store.fenced.append(run.fence, { after: 1, records: [step(0), step(1)] });

  await whileStopped(() => copy(folder, `${folder}-behind`)); // what the standby has received so far

  // All of this is acknowledged by the primary and never reaches the standby. Both handles survive the restart.
  const lost: Term[] = [];
  for (let k = 0; k < 3; k++) lost.push(await acquired(store, request(lead, byForce)));
  expect((await store.fenced.append(run.fence, { after: 3, records: [step(2)] })).head).toBe(4);
  const other = await openPostgres({ url });
  const numbers = [...(await created(store, 2)), ...(await created(other, 5))];

  await whileStopped(() => {
    rmSync(folder, { recursive: true, force: true });
    copy(`${folder}-behind`, folder);
    writeFileSync(join(folder, "standby.signal"), "");
    const { uid, gid } = statSync(folder);
    chownSync(join(folder, "standby.signal"), uid, gid);
  });
  await expect(openPostgres({ url })).rejects.toThrow(/TAPE_STORE_UNREACHABLE.*standby/);
  expect(await codeOf(acquired(store, request(lead, byForce)))).toBe("TAPE_STORE_UNREACHABLE");
  const admin = await adminOf(address);
  expect((await admin.query("select pg_promote()")).rows).toEqual([{ pg_promote: true }]);

  // Before any process has noticed: writes of the holders are rejected, even if the journal has lost none of theirs.
  // They may have seen what other journals have lost.
  expect(await codeOf(store.fenced.append(run.fence, { after: 4, records: [step(3)] }))).toBe("TAPE_FENCED");
  const parked = { kind: "term.ended", data: { reason: "released", notesTaken: 0 } } as const;
  for (const record of [step(2), parked, { kind: "gate.opened", data: { pos: 9, name: "g" } } as const]) {
    expect(await codeOf(store.fenced.append(run.fence, { after: 3, records: [record] })), record.kind).toBe(
      "TAPE_FENCED",
    );
  }
  expect(await codeOf(store.fenced.append(lost[2]!.fence, { after: 4, records: [step(3)] }))).toBe("TAPE_FENCED");

  // Likewise a guard in the user's own transaction, and no holder learns that it still holds: `first` was taken over on
  // the old server, and only there is that recorded.
  const user = await adminOf(address);
  for (const { fence } of [first, spare, lost[2]!]) {
    await user.query("begin");
    expect(await codeOf(guardPostgres(user, { name: "lead", token: fence.token, fence }))).toBe("TAPE_FENCED");
    await user.query("rollback");
  }
  await user.end();

  const raw = new Connections(parsePostgresUrl(url));
  for (const { fence } of [first, spare]) {
    const { tenant, journal, token, nonce } = fence;
    const beat = { tenant, journal, token, nonce, progress: 1, progressAgoMs: 0, progressNote: null };
    expect((await raw.ask("lease.renew", beat)).rows).toEqual([]);
    const list = (value: unknown) => `{${value}}`;
    const many = { journals: list(journal), tenants: list(tenant), tokens: list(token), nonces: list(nonce) };
    expect(
      (await raw.ask("renew_many", { ...many, progresses: "{1}", progressAgos: "{0}", progressNotes: "{NULL}" })).rows,
    ).toEqual([]);
    await admin.query("update tape.leases set max_stall_ms = 0, progress_at = 0 where journal = $1", [fence.journal]);
    expect((await raw.ask("lease.stall", { ...beat, progress: 0 })).rows).toEqual([]);
    await admin.query("update tape.leases set max_stall_ms = null where journal = $1", [fence.journal]);
  }
  expect((await raw.ask("journals.block", { size: 1 })).rows).toEqual([]);
  expect((await raw.ask("lease.take", taking(first.fence, lasting.claimant.owner, 9n))).rows).toEqual([]);
  await raw.close();

  // A heartbeat is enough to notice, and its holder is rejected.
  const beats = await store.claim.renew([run, spare, first].map(({ fence }) => ({ fence, progress: 1 })));
  expect(beats.map((beat) => beat.ok)).toEqual([false, false, false]);
  expect((await admin.query("select epoch::int from tape.meta")).rows).toEqual([{ epoch: 1 }]);

  // The earlier handles notice on their own, also when both are used at once.
  const [renewed, twice] = await Promise.all([
    acquired(store, request(lead, byForce)),
    acquired(other, request({ name: "spare" }, byForce)),
  ]);
  expect((await store.read.settings()).epoch).toBe(1);
  const tokens = [first, ...lost, renewed].map((term) => term.fence.token);
  expect(renewed.fence.token > 1n << 40n && twice.fence.token > 1n << 40n).toBe(true);
  expect(new Set(tokens).size).toBe(tokens.length);
  // A holder whose lease the standby knew is fenced as well: its store was rewound.
  expect(await codeOf(store.fenced.append(run.fence, { after: 3, records: [step(2)] }))).toBe("TAPE_FENCED");

  const fresh = await openPostgres({ url });
  expect((await fresh.read.settings()).epoch).toBe(1); // raised once, not by each process that notices
  numbers.push(...(await created(fresh, 3)), ...(await created(other, 3)), ...(await created(store, 3)));
  expect(new Set(numbers).size).toBe(numbers.length);

  // A timeline in between, on which the epoch was raised and tokens were issued, was lost with all of that. The epoch
  // is raised by the number of timelines that have passed, otherwise this one would equal the lost one.
  await admin.query("update tape.meta set timeline = '00000000'");
  const later = await openPostgres({ url });
  expect((await later.read.settings()).epoch).toBe(3);
  expect((await acquired(later, request(lead, byForce))).fence.token > 3n << 40n).toBe(true);
  await later.close();
  await admin.end();
  await Promise.all([store.close(), other.close(), fresh.close()]);
});
