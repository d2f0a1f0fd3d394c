import { strict as assert } from "node:assert";
import { callbackToken } from "../../src/model/callback-token.ts";
import type { Term } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import { type Role, roles } from "../../src/protocol/route.ts";
import { hashOf } from "../../src/server/token-auth.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { scheduleSpec } from "../../testkit/conformance/frame.ts";

/** Things of one tenant, one of each kind that a call can name. */
export interface Scene {
  readonly tenant: string;
  /** A held run, its next position, and an attempt in flight. */
  readonly run: string;
  readonly journal: number;
  readonly fence: { readonly journal: number; readonly token: string; readonly nonce: string };
  readonly head: number;
  /** A run without a holder. */
  readonly idle: string;
  readonly ended: string;
  readonly stuck: string;
  /** A run with an effect in doubt. */
  readonly inDoubt: string;
  readonly item: number;
  readonly lease: string;
  readonly key: string;
  readonly businessKey: string;
  readonly schedule: string;
  readonly token: string;
  /** A held run that has published a value, its fence, and the token of its callback. */
  readonly talk: string;
  readonly talkFence: Scene["fence"];
  readonly callback: string;
  /** The token of its stream. */
  readonly streamToken: string;
  readonly blob: string;
  /** A sink with a dead letter, and the fence of its lease. */
  readonly sink: string;
  readonly sinkFence: Scene["fence"];
  readonly queue: string;
  /** A run that waits in it. */
  readonly queued: string;
  /** A build with a live run. */
  readonly build: string;
}

const claimant = { owner: "worker/1", label: "worker", reactor: "recovery", ttlMs: 3_600_000 };
const secret = "x".repeat(43);

export const tokenOf = (tenant: string, role: Role): string => `${tenant}-${role}.${secret}`;

/** A token of every role. */
export async function giveTokens(store: Store, tenant: string): Promise<void> {
  for (const role of roles) {
    const token = { id: `${tenant}-${role}`, tenant, name: `${role} of ${tenant}`, role, hash: hashOf(secret) };
    await store.intake.putToken(token, { by: "setup", reason: "test" });
  }
}

/** What the names in a scene begin with, what its values hold, and the first of its nonces. */
export interface SceneWords {
  readonly name: string;
  readonly secret: string;
  readonly nonce: bigint;
}

const usualWords: SceneWords = { name: "canary", secret: "canary", nonce: 101n };

export async function makeScene(store: Store, tenant: string, words = usualWords): Promise<Scene> {
  const { name: prefix, secret: hidden } = words;
  let { nonce: nextNonce } = words;
  const [run, idle, stuck, inDoubt] = ["pay", "idle", "stuck", "doubt"].map((name) => `${prefix}-${name}`) as [
    string,
    string,
    string,
    string,
  ];
  const begin = async (id: string, more: object = { budget: { usd: 5 } }): Promise<Term> => {
    const nonce = nextNonce++;
    const spec = { id, workflow: "pay", input: { secret: hidden }, labels: { of: hidden }, ...more };
    const [created] = await store.intake.createRuns(tenant, [spec], { ...claimant, nonce });
    assert.ok(created?.ok && created.term);
    return created.term;
  };
  const write = async ({ fence, head }: Term, ...records: unknown[]): Promise<number> =>
    (await store.fenced.append(fence, { after: head, records: records as NewRecord[] })).head;
  const intent = (pos: number, more: object) => ({
    kind: "effect.intended",
    data: {
      ...{ pos, name: "wire", semantics: "non_idempotent", dispatch: "inline", key: `${prefix}-${pos}`, argsHash: "h" },
      args: { amount: 7 },
      ...more,
    },
  });
  const dispatched = (pos: number) => ({ kind: "effect.dispatched", data: { pos, attempt: 1, sendWithinMs: 1_000 } });

  const held = await begin(run);
  const head = await write(
    held,
    intent(0, { businessKey: `${prefix}-invoice`, dispatch: "outbox" }),
    { kind: "gate.opened", data: { pos: 1, name: "cfo", payload: hidden, timeoutMs: 1 } },
    intent(2, {}),
    dispatched(2),
  );
  await write(await begin(stuck), { kind: "run.stuck", data: { reason: hidden } }, released);
  const doubted = await begin(inDoubt);
  await write(
    doubted,
    intent(0, {}),
    dispatched(0),
    { kind: "effect.settled", data: { pos: 0, to: "UNKNOWN", reason: "ack_lost" } },
    released,
  );
  const [effect] = await store.read.effects(tenant, { run: inDoubt });
  await store.intake.createRuns(tenant, [{ id: idle, workflow: "pay", input: hidden }]);
  const named = await store.claim.acquire(tenant, {
    ...{ target: { name: `${prefix}-sweeper` }, claimant, nonce: nextNonce, expect: "free" as const },
  });
  assert.ok(named.ok && effect?.item);
  await store.intake.putValue(tenant, `${prefix}-key`, hidden, "must_create");
  await store.intake.putSchedule(tenant, {
    id: `${prefix}-nightly`,
    spec: scheduleSpec(hidden),
    nextAt: 1,
    paused: false,
  });
  await store.intake.putQueue(tenant, `${prefix}-models`, { concurrency: 2, counts: "running" });
  const waiting = { id: `${prefix}-queued`, workflow: "pay", input: hidden, queue: `${prefix}-models`, key: "acme" };
  await store.intake.createRuns(tenant, [waiting]);
  await giveTokens(store, tenant);
  nextNonce++;
  const talk = await begin(`${prefix}-talk`, {});
  await write(
    talk,
    { kind: "gate.opened", data: { pos: 0, name: "paid", callback: "json" } },
    { kind: "state.published", data: { pos: 1, name: "progress", value: hidden } },
    {
      kind: "decision.made",
      data: { pos: 2, name: "clerk 1", model: "a/b", value: hidden, usage: { input: 3, output: 4, usd: 0.5 } },
    },
  );
  const callback = callbackToken(await store.claim.callbackSecret(talk.fence), { journal: talk.journal, pos: 0 });
  await store.fenced.appendChunks([
    [talk.fence, { streams: [{ name: "tokens", from: 0, chunks: [{ part: 2, value: hidden }] }] }],
  ]);
  const blob = "b10b".repeat(16);
  await store.fenced.putBlob(talk.fence, { blob, n: 0, chunks: 2, text: hidden });
  const { token: streamToken } = await store.intake.streamToken(tenant, `${prefix}-talk`, "tokens", 3_600_000);
  const sink = await store.claim.acquire(tenant, {
    ...{ target: { name: `sink ${prefix}-billing` }, claimant, nonce: nextNonce++, expect: "free" as const },
  });
  assert.ok(sink.ok);
  await store.fenced.checkpoint(sink.term.fence, JSON.stringify({ cursor: hidden }));
  await store.fenced.deadLetter(sink.term.fence, {
    ...{ event: "7:1:5", journal: held.journal, seq: 1, inbox: false, kind: "run.created", attempts: 3 },
    ...{ code: "400", error: hidden },
  });
  for (const build of ["b1", "b2"]) await store.intake.reportBuild(tenant, `${prefix}-${build}`, ["pay"]);
  const ended = { status: "COMPLETED", notesTaken: 0, outcome: hidden };
  await write(await begin(`${prefix}-ended`, {}), { kind: "run.ended", data: ended });
  await write(await begin(`${prefix}-pinned`, { build: `${prefix}-b1` }), released);
  return {
    sink: `${prefix}-billing`,
    sinkFence: wireFence(sink.term),
    ...{ tenant, run, idle, stuck, inDoubt, head, journal: held.journal, item: effect.item },
    fence: wireFence(held),
    ...{ lease: `${prefix}-sweeper`, key: `${prefix}-key`, ended: `${prefix}-ended` },
    ...{ businessKey: `${prefix}-invoice`, schedule: `${prefix}-nightly` },
    ...{ token: `${tenant}-starter`, queue: `${prefix}-models`, queued: waiting.id, build: `${prefix}-b1` },
    ...{ talk: `${prefix}-talk`, callback, streamToken, blob },
    talkFence: wireFence(talk),
  };
}

const wireFence = ({ fence: { journal, token, nonce } }: Term): Scene["fence"] => ({
  ...{ journal, token: String(token), nonce: String(nonce) },
});

const released = { kind: "term.ended", data: { reason: "released", notesTaken: 0 } };

/** The same names, and nothing of that name anywhere. */
export function ghostOf(scene: Scene): Scene {
  const journal = 900_000_001;
  return {
    ...{ tenant: scene.tenant, run: "ghost-pay", idle: "ghost-idle", stuck: "ghost-stuck", inDoubt: "ghost-doubt" },
    ended: "ghost-ended",
    ...{ journal, head: scene.head, item: 900_000_002, fence: { ...scene.fence, journal } },
    ...{ lease: "ghost-sweeper", key: "ghost-key", businessKey: "ghost-invoice", schedule: "ghost-nightly" },
    ...{ token: "ghost-starter", queue: "ghost-models", queued: "ghost-queued", build: "ghost-b1" },
    ...{ sink: "ghost-billing", sinkFence: { ...scene.sinkFence, journal } },
    ...{ talk: "ghost-talk", callback: `${journal}.0.${secret}`, talkFence: { ...scene.talkFence, journal } },
    blob: "f".repeat(64),
    streamToken: `stream.${journal}.9000000000000.dG9rZW5z.${secret}`,
  };
}
