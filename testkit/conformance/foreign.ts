import { strict as assert } from "node:assert";
import { callbackToken } from "../../src/model/callback-token.ts";
import { sinkLease } from "../../src/model/dead-letter.ts";
import { TapeError } from "../../src/model/errors.ts";
import { makeFence } from "../../src/model/fence.ts";
import type { IntakeOps, Store } from "../../src/store/contract/store.ts";
import { audit, blobPart, type Case, letter, type NamedThings, outcomeOf, secret, table } from "./foreign-calls.ts";
import {
  bigintText,
  type Cases,
  claimant,
  nonce,
  record,
  request,
  scheduleSpec,
  spec,
  step,
  tenant,
  unique,
} from "./frame.ts";
import { begin, dispatched, everything, intent, lasting } from "./holder.ts";

/** Numbers and times that the store assigns: they differ from call to call. */
const passing: ReadonlySet<string> = new Set(
  (
    "journal run root parent item source authority by token nonce cursor at createdAt endedAt agoMs lagMs dueInMs lateMs remainingMs heldMs " +
    "progressAgoMs"
  ).split(" "),
);

/** The outcome without the requested names and without what differs from call to call. */
function plain(outcome: unknown, me: string, of: NamedThings): string {
  const { run, name, key, schedule, queue, queuedRun, build, businessKey, apiToken, owner } = of;
  const names = [me, name, key, schedule, queue, queuedRun, build, businessKey, apiToken, owner, run]; // the run's id is part of the others
  const text = (one: string): string => {
    let left = one.replaceAll(/\b(lease|journal) \d+/g, "$1 NUMBER");
    for (const known of names) left = left.replaceAll(known, "NAME");
    return left;
  };
  const masked = (field: string, value: unknown): unknown => {
    if (value instanceof TapeError) return { code: value.code, message: value.message, details: value.details };
    if ((passing.has(field) && value !== null && value !== undefined) || (field === "name" && Number(value) > 0))
      return "…";
    return typeof value === "string" ? text(value) : bigintText(field, value);
  };
  return JSON.stringify(outcome, masked) ?? "undefined";
}

/** One thing of each kind, of the victim's tenant. */
export async function victimOn(store: Store): Promise<NamedThings> {
  const run = await begin(store, { input: secret, budget: { usd: 5 }, labels: { of: secret } });
  await run.write(
    intent(0, { dispatch: "outbox", businessKey: `key-${run.id}`, args: secret }),
    record("gate.opened", { pos: 1, name: "g", payload: secret, timeoutMs: 1 }),
    intent(2),
    dispatched(2, { sendWithinMs: 60_000 }),
    record("value.written", { key: `value-${run.id}`, version: 1, value: secret }),
    record("gate.opened", { pos: 3, name: "paid", callback: "json" }),
    record("state.published", { pos: 4, name: "progress", value: secret }),
  );
  await store.fenced.appendChunks([
    [run.term.fence, { streams: [{ name: "tokens", from: 0, chunks: [{ part: 0, value: secret }] }] }],
  ]);
  await store.fenced.putBlob(run.term.fence, { ...blobPart, text: secret });
  const { item } = await run.effect(0);
  const sink = `lease-${run.id}`;
  const name = sinkLease(sink);
  const event = `${run.journal}:1:5`;
  const lease = request({ name }, { claimant: claimant(ownerOf(run.id), lasting) });
  const named = await store.claim.acquire(tenant, lease);
  assert.ok(named.ok && item !== null);
  await store.fenced.checkpoint(named.term.fence, secret);
  await store.fenced.deadLetter(named.term.fence, letter(event, run.journal));
  await store.intake.signal(tenant, run.id, { name: "s", value: secret, key: "sent", asks: true });
  await run.write(record("reply.sent", { pos: 5, note: 1, value: secret }));
  const callbacks = await store.claim.callbackSecret(run.term.fence);
  await store.intake.putSchedule(tenant, {
    id: `schedule-${run.id}`,
    spec: scheduleSpec(secret),
    nextAt: 1,
    paused: false,
  });
  const apiToken = `token-${run.id}`;
  await store.intake.putToken({ id: apiToken, tenant, name: secret, role: "reader", hash: "h" }, audit);
  await store.intake.reportProcess(tenant, { owner: ownerOf(run.id), label: secret, body: {} });
  await store.intake.createRuns(tenant, [spec({ input: secret })]); // so that a find can claim it
  const queue = `queue-${run.id}`;
  const queuedRun = `queued-${run.id}`;
  await store.intake.putQueue(tenant, queue, { counts: "running" });
  await store.intake.createRuns(tenant, [spec({ id: queuedRun, input: secret, queue, key: secret })]);
  const build = `build-${run.id}`;
  await store.intake.reportBuild(tenant, build, ["w"]);
  await store.intake.createRuns(tenant, [spec({ input: secret, build })], { ...claimant(), nonce: nonce() });
  const [entry] = await store.read.audit(tenant);
  const view = await store.read.lease(tenant, { run: run.id });
  return {
    ...{ run: run.id, journal: run.journal, head: run.head, item, name, apiToken, sink, event },
    callback: callbackToken(callbacks, { journal: run.journal, pos: 3 }),
    ...{
      nameJournal: named.term.journal,
      key: `value-${run.id}`,
      schedule: `schedule-${run.id}`,
      queue,
      queuedRun,
      build,
    },
    ...{ businessKey: `key-${run.id}`, owner: view!.owner!, nonce: run.term.fence.nonce, nameNonce: lease.nonce },
    ...{ token: run.term.fence.token, audit: entry!.cursor },
    cursor: (await store.read.feed(undefined, 1, tenant)).cursor,
  };
}

const ownerOf = (id: string): string => `owner-${id}`;

/** The same kinds of names, naming nothing that exists. */
function ghostOf(victim: NamedThings): NamedThings {
  const id = unique("ghost");
  return {
    ...victim, // its tokens and cursors: what they belong to does not exist
    ...{ run: id, journal: 900_000_001, item: 900_000_002, nameJournal: 900_000_003, name: `sink lease-${id}` },
    ...{ sink: `lease-${id}`, event: `${id}:1:5` },
    ...{ key: `value-${id}`, schedule: `schedule-${id}`, businessKey: `key-${id}`, apiToken: `token-${id}` },
    ...{
      queue: `queue-${id}`,
      queuedRun: `queued-${id}`,
      build: `build-${id}`,
      callback: `900000001.3.${"x".repeat(43)}`,
    },
    ...{ owner: ownerOf(id), nonce: nonce(), nameNonce: nonce() },
  };
}

/** Everything of a tenant, as text. */
export async function statesOf(store: Store, of: string): Promise<string> {
  const [state, tokens, processes, audit] = await Promise.all([
    everything(store, of),
    store.read.tokens(of),
    store.read.processes(of),
    store.read.audit(of),
  ]);
  const reports = processes.map(({ agoMs: _ago, ...one }) => one);
  return JSON.stringify([state, tokens, reports, audit], bigintText);
}

export const foreign: Cases = ({ it }, fresh) => {
  it("every call of the contract has a case", () => {
    const { store } = fresh();
    for (const group of ["intake", "claim", "fenced", "read"] as const) {
      const calls = Object.keys(store[group])
        .filter((name) => name !== "close")
        .sort();
      assert.deepEqual(Object.keys(table[group]).sort(), calls, group);
    }
    return Promise.resolve();
  });

  /** Makes the call twice, as two empty tenants: about the victim's things, and about things that do not exist. */
  async function compare<G extends object>(
    store: Store,
    victim: NamedThings,
    what: string,
    call: Case<G>,
    calls: (me: string, of: NamedThings) => G,
  ): Promise<void> {
    if (typeof call === "string") return;
    const outcomes: string[] = [];
    for (const named of [victim, ghostOf(victim)]) {
      const me = unique("stranger");
      const outcome = await outcomeOf(call(calls(me, named), me, named, store));
      const text = plain(outcome, me, named);
      assert.ok(!text.includes(secret), `${what} reveals a secret: ${text}`);
      outcomes.push(text);
    }
    const [foreignly, absently] = outcomes as [string, string];
    const at = [...foreignly].findIndex((letter, k) => letter !== absently[k]);
    const about = (text: string): string => text.slice(Math.max(0, at - 200), at + 100);
    const message = `${what} returns ${about(foreignly)}, but ${about(absently)} for what does not exist`;
    assert.ok(foreignly === absently, message);
  }

  for (const group of ["intake", "claim", "fenced", "read"] as const) {
    it(`[INV-12] another tenant's names, numbers and secrets open nothing: ${group}`, async () => {
      const { store } = fresh();
      const victim = await victimOn(store);
      const before = await statesOf(store, tenant);
      for (const [name, call] of Object.entries(table[group] as Record<string, Case<object>>)) {
        await compare(store, victim, `${group}.${name}`, call, () => store[group]);
        assert.equal(await statesOf(store, tenant), before, `${group}.${name} changed what is another's`);
      }
      const { fence } = await holderOf(store, victim);
      await store.fenced.append(fence, { after: victim.head, records: [step(9)] }); // its holder continues as before
    });
  }

  it("another tenant's idempotency key returns nothing", async () => {
    const { store } = fresh();
    const victim = await victimOn(store);
    const repeat = { tenant, key: `once-${victim.run}`, hash: "h" };
    await store.once(repeat).putValue(tenant, "once", secret, "unconditional");
    const before = await statesOf(store, tenant);
    for (const [name, call] of Object.entries(table.intake)) {
      const once = (me: string, of: NamedThings): IntakeOps =>
        store.once({ ...repeat, tenant: me, key: `once-${of.run}` });
      await compare(store, victim, `once ${name}`, call as Case<IntakeOps>, once);
      assert.equal(await statesOf(store, tenant), before, `once ${name} changed what is another's`);
    }
    const again = await store.once(repeat).putValue(tenant, "once", secret, "unconditional");
    assert.equal(again.version, 1, "the first one's result");
  });
};

async function holderOf(store: Store, { journal, token, nonce: own }: NamedThings) {
  const view = await store.read.lease(tenant, { journal });
  assert.equal(view?.token, token, "it still holds its term");
  return { fence: makeFence(tenant, journal, token, own) };
}
