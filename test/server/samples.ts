import { contract, type RouteName } from "../../src/protocol/contract.ts";
import type { Route } from "../../src/protocol/route.ts";
import { scheduleSpec } from "../../testkit/conformance/frame.ts";
import type { Scene } from "./scene.ts";

export interface Sample {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

const claimant = { owner: "worker/2", label: "worker", reactor: "recovery", ttlMs: 3_600_000 };
const audit = { reason: "a test" };
const none = (): Sample => ({});
const byRun = ({ run }: Scene): Sample => ({ params: { id: run } });
const byLease = ({ lease }: Scene): Sample => ({ params: { name: lease } });
const byBuild = ({ build }: Scene): Sample => ({ params: { build } });
const byQueue = ({ queue }: Scene): Sample => ({ params: { name: queue } });
const bySink = ({ sink }: Scene): Sample => ({ params: { name: sink } });
const target = ({ journal }: Scene) => ({ journal });

/** A successful call of each route, for a caller with its role. A missing route does not compile. */
export const samples: { readonly [N in RouteName]: (scene: Scene) => Sample } = {
  "runs.start": ({ run }) => ({ body: { id: `${run}-new`, workflow: "pay", input: { day: 1 } } }),
  mcp: () => ({ body: { jsonrpc: "2.0", id: 1, method: "tools/list" } }),
  "runs.startAll": ({ run, queue }) => ({
    body: {
      runs: [{ id: `${run}-first`, workflow: "pay", input: 1, queue, key: "acme", priority: 1, delayMs: 60_000 }],
    },
  }),
  "runs.list": () => ({ query: { status: "WAITING,RUNNING,RUNNABLE", limit: "10" } }),
  "runs.get": byRun,
  "runs.result": byRun,
  "runs.journal": byRun,
  "runs.follow": byRun,
  "runs.terms": byRun,
  "runs.budgets": byRun,
  "runs.tree": byRun,
  "runs.signal": ({ idle }) => ({ params: { id: idle }, body: { name: "cfo", value: { approved: true } } }),
  "runs.published": ({ talk }) => ({ params: { id: talk } }),
  "runs.watch": ({ talk }) => ({ params: { id: talk, name: "progress" } }),
  "runs.ask": ({ idle }) => ({ params: { id: idle }, body: { name: "cfo", value: { approved: true }, key: "asked" } }),
  "runs.reply": ({ talk }) => ({ params: { id: talk, n: "1" } }),
  "callbacks.deliver": ({ callback }) => ({ params: { token: callback }, body: { receipt: 7 } }),
  "store.deliver": ({ callback }) => ({ body: { token: callback, body: { value: { receipt: 7 } } } }),
  "store.callbackSecret": ({ talkFence: fence }) => ({ body: { fence } }),
  "runs.conversation": ({ talk }) => ({ params: { id: talk } }),
  "runs.modelUsage": ({ talk }) => ({ query: { of: talk } }),
  "runs.streams": ({ talk }) => ({ params: { id: talk } }),
  "runs.stream": ({ talk }) => ({ params: { id: talk, name: "tokens" }, query: { from: "0" } }),
  "runs.streamToken": ({ talk }) => ({ params: { id: talk }, body: { stream: "tokens", ttlMs: 60_000 } }),
  "store.appendChunks": ({ talkFence: fence }) => ({
    body: {
      batch: [{ fence, append: { streams: [{ name: "tokens", from: 1, chunks: [{ part: 9, value: "b" }] }] } }],
    },
  }),
  "store.chunks": ({ talk }) => ({ body: { wanted: [{ run: talk, stream: "tokens", from: 0 }] } }),
  "store.streamParts": ({ talk }) => ({ body: { run: talk, stream: "tokens" } }),
  "store.streamAccess": ({ streamToken }) => ({ body: { token: streamToken } }),
  "runs.blob": ({ talk, blob }) => ({ params: { id: talk, blob }, query: { n: "0" } }),
  "store.putBlob": ({ talkFence: fence, blob }) => ({ body: { fence, part: { blob, n: 1, chunks: 2, text: "b" } } }),
  "store.blob": ({ talk, blob }) => ({ body: { target: { run: talk }, blob, n: 0 } }),
  "runs.cancel": ({ idle }) => ({ params: { id: idle }, body: audit }),
  "runs.takeover": ({ idle }) => ({ params: { id: idle }, body: audit }),
  "runs.redrive": ({ stuck }) => ({ params: { id: stuck }, body: audit }),
  "effects.list": ({ run }) => ({ query: { run, status: "PENDING", order: "desc" } }),
  "inDoubt.list": ({ inDoubt }) => ({ query: { run: inDoubt } }),
  "effects.resolve": ({ inDoubt }) => ({
    params: { id: inDoubt, pos: "0", sub: "0" },
    body: { ...audit, resolution: { as: "failed", error: "not at the bank" } },
  }),
  "gates.list": ({ run }) => ({ query: { run, open: "true" } }),
  "timers.list": ({ run }) => ({ query: { run } }),
  "businessKeys.get": ({ businessKey }) => ({ query: { scope: "wire", businessKey } }),
  "leases.list": () => ({ query: { held: "true" } }),
  "leases.get": byLease,
  "leases.terms": byLease,
  "leases.follow": byLease,
  "processes.list": none,
  "leases.takeover": (scene) => ({ ...byLease(scene), body: audit }),
  "leases.pause": (scene) => ({ ...byLease(scene), body: audit }),
  "leases.resume": (scene) => ({ ...byLease(scene), body: audit }),
  "queues.list": none,
  "queues.keys": byQueue,
  "queues.runs": (scene) => ({ ...byQueue(scene), query: { key: "acme", state: "QUEUED" } }),
  "runs.queue": ({ queued }) => ({ params: { id: queued } }),
  "queues.define": (scene) => ({ ...byQueue(scene), body: { spec: { concurrency: 3, counts: "running" } } }),
  "queues.pause": (scene) => ({ ...byQueue(scene), body: { ...audit, key: "acme" } }),
  "queues.resume": (scene) => ({ ...byQueue(scene), body: audit }),
  "queues.set": (scene) => ({ ...byQueue(scene), body: { ...audit, change: { concurrency: 1, rate: null } } }),
  "queues.reset": (scene) => ({ ...byQueue(scene), query: audit }),
  "builds.list": none,
  "builds.runs": byBuild,
  "builds.drained": byBuild,
  "builds.current": (scene) => ({ ...byBuild(scene), body: audit }),
  "builds.move": (scene) => ({
    ...byBuild(scene),
    body: { ...audit, to: scene.build.replace("b1", "b2"), withinMs: 0 },
  }),
  "sinks.list": none,
  "sinks.deadLetters": bySink,
  "sinks.replay": (scene) => ({ ...bySink(scene), body: { ...audit, events: ["7:1:5"] } }),
  "sinks.discard": (scene) => ({ ...bySink(scene), body: audit }),
  "sinks.pause": (scene) => ({ ...bySink(scene), body: audit }),
  "sinks.resume": (scene) => ({ ...bySink(scene), body: audit }),
  "sinks.rewind": (scene) => ({ ...bySink(scene), body: { ...audit, event: "start" } }),
  "sinks.forget": (scene) => ({ ...bySink(scene), body: audit }),
  "store.checkpoint": ({ sinkFence: fence }) => ({ body: { fence, text: "here" } }),
  "store.deadLetter": ({ sinkFence: fence, journal }) => ({
    body: {
      fence,
      letter: {
        ...{ event: "7:1:5", journal, seq: 1, inbox: false, kind: "run.created", attempts: 3 },
        ...{ code: "400", error: "bad request" },
      },
    },
  }),
  "store.letterSent": ({ sinkFence: fence }) => ({ body: { fence, event: "7:1:5" } }),
  "store.subjects": ({ journal, item }) => ({ body: { journals: [journal, item] } }),
  "values.list": () => ({ query: { prefix: "" } }),
  "values.get": ({ key }) => ({ params: { key } }),
  "values.put": ({ key }) => ({ params: { key }, body: { value: 2, when: "unconditional" } }),
  "values.delete": ({ key }) => ({ params: { key }, query: { version: "1" } }),
  "values.history": ({ key }) => ({ params: { key }, query: { after: "0" } }),
  "values.watch": ({ key }) => ({ params: { key }, query: { after: "0" } }),
  "schedules.list": none,
  "schedules.put": ({ schedule }) => ({
    params: { id: schedule },
    body: { spec: scheduleSpec("s"), nextAt: null, paused: true },
  }),
  "schedules.delete": ({ schedule }) => ({ params: { id: schedule } }),
  "quotas.get": none,
  "quotas.list": none,
  "quotas.set": ({ tenant }) => ({ body: { tenant, set: { runs: null }, ...audit } }),
  overview: none,
  "overview.history": () => ({ query: { minutes: "5", buckets: "5" } }),
  "runs.rate": () => ({ query: { since: "1", sizeMs: "60000", buckets: "2" } }),
  "budgets.list": () => ({ query: { limit: "2" } }),
  "journals.names": ({ journal, item }) => ({ query: { of: `${journal},${item}` } }),
  "runs.head": byRun,
  "runs.forkPlan": byRun,
  "runs.fork": ({ idle }) => ({ params: { id: idle }, body: { ...audit, at: 0 } }),
  "store.create": ({ run }) => ({
    body: {
      calls: [{ specs: [{ id: `${run}-made`, workflow: "pay", input: 1 }], first: { ...claimant, nonce: "201" } }],
    },
  }),
  "store.append": ({ fence, head }) => ({
    body: {
      batch: [
        { fence, entry: { after: head, records: [{ kind: "step.done", data: { pos: 9, name: "s", value: 1 } }] } },
      ],
    },
  }),
  "store.find": () => ({ body: { claimant, nextReactor: "recovery", staleOf: [], limit: 10, nonce: "202" } }),
  "store.acquire": ({ idle }) => ({ body: { target: { run: idle }, claimant, nonce: "203", expect: "free" } }),
  "store.renew": ({ fence }) => ({ body: { renewals: [{ fence, progress: 1 }] } }),
  "store.evidence": ({ fence }) => ({
    body: {
      attempt: { run: fence.journal, pos: 2, token: fence.token, nonce: fence.nonce },
      evidence: { happened: true, value: "receipt" },
    },
  }),
  "store.fireTimer": ({ journal }) => ({ body: { run: journal, pos: 1, purpose: "gate_timeout" } }),
  "store.dueTimers": () => ({ body: { limit: 10 } }),
  "store.fireSchedule": ({ schedule }) => ({ body: { id: schedule, version: 1, nextAt: null, runs: [] } }),
  "store.dueSchedules": () => ({ body: { limit: 10 } }),
  "store.agenda": () => ({ body: {} }),
  "store.reportProcess": () => ({ body: { owner: "o", label: "replica", body: { singletons: [] } } }),
  "store.reportBuild": ({ build }) => ({ body: { build, workflows: ["quote"] } }),
  "store.removeProcess": () => ({ body: { owner: "o" } }),
  "store.due": () => ({ body: { reactor: "recovery", cap: 100 } }),
  "store.unserved": () => ({ body: { workflows: [], minLagMs: 0 } }),
  "store.progress": ({ run }) => ({ body: { ids: [run] } }),
  "store.journal": (scene) => ({ body: { target: target(scene) } }),
  "store.lease": (scene) => ({ body: { target: target(scene) } }),
  "store.terms": (scene) => ({ body: { target: target(scene) } }),
  "store.wakeHints": none,
  whoami: none,
  settings: none,
  "feed.page": none,
  census: none,
  "feed.frontier": none,
  "feed.follow": none,
  audit: none,
  "retention.get": none,
  "retention.run": () => ({ body: audit }),
  "archived.list": none,
  "runs.erase": ({ ended }) => ({ params: { id: ended }, body: audit }),
  "runs.prune": () => ({ body: { endedBefore: 1, limit: 10, ...audit } }),
  "store.restored": () => ({ body: audit }),
  "tokens.list": none,
  "tokens.create": () => ({ body: { name: "ci", role: "worker", expiresInMs: 60_000, ...audit } }),
  "tokens.revoke": ({ token }) => ({ params: { id: token }, body: audit }),
  livez: none,
  readyz: none,
  healthz: none,
  metrics: none,
  openapi: none,
};

export function requestOf(
  name: RouteName,
  scene: Scene,
): { readonly method: string; readonly url: string; readonly body?: unknown } {
  const { method, path } = contract[name] as Route;
  const { params = {}, query, body } = samples[name](scene);
  const filled = path.replaceAll(/\{(\w+)\}/g, (_whole, param: string) => encodeURIComponent(params[param]!));
  const requested = query === undefined ? "" : `?${new URLSearchParams(query)}`;
  return { method, url: `${filled}${requested}`, ...(body === undefined ? {} : { body }) };
}
