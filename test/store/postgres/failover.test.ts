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

/** A server of its own for what a shared one cannot do: to lose commits, in a crash or by a promotion. */
let server: PostgresServer;
let folder: string;
let address: string;
let url: string;

beforeAll(async () => {
  server = await startPostgres({ major: 18, settings: { fsync: "off", full_page_writes: "off" } });
  address = await freshDatabase(server.url);
  url = `${address}?accept_loss=true&transaction_bound_ms=600`; // so long a call insists before it says that there is no primary
  const admin = await adminOf(address);
  folder = Object.values((await admin.query("show data_directory")).rows[0] as object)[0] as string;
  await admin.end();
});
afterAll(async () => {
  rmSync(`${folder}-behind`, { recursive: true, force: true });
  await server.stop();
});

/** Does something with the data while no server runs on it. */
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

it("a server that loses commits in a crash is refused, and accepted only by name, loudly", async () => {
  const refusal = await openPostgres({ url: address }).catch((error: unknown) => error);
  expect(refusal).toMatchObject({
    code: "TAPE_STORE_NOT_DURABLE",
    message: expect.stringMatching(/fsync=off, full_page_writes=off/),
    details: { settings: ["fsync", "full_page_writes"] },
  });
  const said: unknown[] = [];
  const store = await openPostgres({ url, log: (level, event) => said.push([level, event]) });
  expect(said).toEqual([["warn", "store.unsafe"]]);
  expect(await store.read.settings()).toMatchObject({ durable: false, facts: { fsync: "off" } });
  await store.close();
});

/**
 * A standby that lags behind is promoted at the primary's address: commits are lost that were acknowledged, and with them
 * tokens and journal numbers that were handed out. None may be handed out again.
 */
it("after a promotion that lost commits the epoch is raised, old holders are fenced, nothing is handed out twice", async () => {
  const store = await openPostgres({ url });
  const lead = { name: "lead" };
  const first = await acquired(store, request(lead, lasting));
  const spare = await acquired(store, request({ name: "spare" }, lasting));
  const run = await heldRun(store, {}, lasting.claimant);
  await store.fenced.append(run.fence, { after: 1, records: [step(0), step(1)] });

  await whileStopped(() => copy(folder, `${folder}-behind`)); // what the standby has got so far

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

  // Before anybody has looked: what the holders believe in is refused, also where the journal has lost nothing of it. They
  // may have seen what the others have lost.
  expect(await codeOf(store.fenced.append(run.fence, { after: 4, records: [step(3)] }))).toBe("TAPE_FENCED");
  const parked = { kind: "term.ended", data: { reason: "released", notesTaken: 0 } } as const;
  for (const record of [step(2), parked, { kind: "gate.opened", data: { pos: 9, name: "g" } } as const]) {
    expect(await codeOf(store.fenced.append(run.fence, { after: 3, records: [record] })), record.kind).toBe(
      "TAPE_FENCED",
    );
  }
  expect(await codeOf(store.fenced.append(lost[2]!.fence, { after: 4, records: [step(3)] }))).toBe("TAPE_FENCED");

  // A guard of the user's own transaction likewise, and no holder is told that it still holds: `first` was taken over on
  // the old server, and only there is it known.
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
    const beat = { tenant, journal, token, nonce, progress: 1, progressNote: null };
    expect((await raw.ask("lease.renew", beat)).rows).toEqual([]);
    const list = (value: unknown) => `{${value}}`;
    const many = { journals: list(journal), tenants: list(tenant), tokens: list(token), nonces: list(nonce) };
    expect((await raw.ask("renew_many", { ...many, progresses: "{1}", progressNotes: "{NULL}" })).rows).toEqual([]);
    await admin.query("update tape.leases set max_stall_ms = 0, progress_at = 0 where journal = $1", [fence.journal]);
    expect((await raw.ask("lease.stall", { ...beat, progress: 0 })).rows).toEqual([]);
    await admin.query("update tape.leases set max_stall_ms = null where journal = $1", [fence.journal]);
  }
  expect((await raw.ask("journals.block", { size: 1 })).rows).toEqual([]);
  expect((await raw.ask("lease.take", taking(first.fence, lasting.claimant.owner, 9n))).rows).toEqual([]);
  await raw.close();

  // A heartbeat is enough to notice, and refuses its holder.
  const beats = await store.claim.renew([run, spare, first].map(({ fence }) => ({ fence, progress: 1 })));
  expect(beats.map((beat) => beat.ok)).toEqual([false, false, false]);
  expect((await admin.query("select epoch::int from tape.meta")).rows).toEqual([{ epoch: 1 }]);

  // The handles of before notice by themselves, also when both ask at once.
  const [again, twice] = await Promise.all([
    acquired(store, request(lead, byForce)),
    acquired(other, request({ name: "spare" }, byForce)),
  ]);
  expect((await store.read.settings()).epoch).toBe(1);
  const tokens = [first, ...lost, again].map((term) => term.fence.token);
  expect(again.fence.token > 1n << 40n && twice.fence.token > 1n << 40n).toBe(true);
  expect(new Set(tokens).size).toBe(tokens.length);
  // Who held a lease that the standby knew of is fenced as well: its store was rewound under it.
  expect(await codeOf(store.fenced.append(run.fence, { after: 3, records: [step(2)] }))).toBe("TAPE_FENCED");

  const fresh = await openPostgres({ url });
  expect((await fresh.read.settings()).epoch).toBe(1); // once, not by each who sees it
  numbers.push(...(await created(fresh, 3)), ...(await created(other, 3)), ...(await created(store, 3)));
  expect(new Set(numbers).size).toBe(numbers.length);

  // A timeline between, on which the epoch was raised and tokens were issued, and which was lost with all that: as many
  // epochs as timelines have passed, or this one would be the lost one again.
  await admin.query("update tape.meta set timeline = '00000000'");
  const later = await openPostgres({ url });
  expect((await later.read.settings()).epoch).toBe(3);
  expect((await acquired(later, request(lead, byForce))).fence.token > 3n << 40n).toBe(true);
  await later.close();
  await admin.end();
  await Promise.all([store.close(), other.close(), fresh.close()]);
});
