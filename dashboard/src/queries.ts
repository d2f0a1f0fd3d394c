import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { call, type DeadLetter, type Lease, type Run } from "./api.ts";
import { unwrap } from "./format.ts";
import { type RunSearch, runQuery } from "./run-search.ts";
import { setCodecEndpoint } from "./sealed.ts";

/**
 * Every query of the dashboard with its key, so that two components that need the same data share one request. Queries
 * are live by default: wake hints and a 5 s interval refetch them. `meta: { live: false }` exempts what never changes,
 * or what changes too often to follow.
 */
const notLive = { meta: { live: false } } as const;
const liveMs = 5_000;
/** A run that is open changes often; one that has ended can still be forked or compensated. */
const runMs = (isOpen: boolean): number => (isOpen ? 2_000 : 10_000);
/** Records never change once they are written. */
const immutable = { staleTime: Number.POSITIVE_INFINITY, ...notLive } as const;

/** Records of a journal that one request reads. */
export const windowRows = 200;

export const whoami = () =>
  queryOptions({
    queryKey: ["whoami"],
    queryFn: async () => {
      const identity = await call("whoami");
      setCodecEndpoint(identity.codecEndpoint, identity.tenant);
      return identity;
    },
    retry: false,
    ...notLive,
  });

export const overview = () => queryOptions({ queryKey: ["overview"], queryFn: () => call("overview") });

const historyMinutes = 60;
const historyBuckets = 30;
/** The last hour. Every write changes its counts a little, so it follows a slow interval instead of hints. */
export const history = () =>
  queryOptions({
    queryKey: ["history"],
    queryFn: () => call("overview.history", { query: { minutes: historyMinutes, buckets: historyBuckets } }),
    refetchInterval: 30_000,
    ...notLive,
  });

export const retention = () =>
  queryOptions({ queryKey: ["retention"], queryFn: () => call("retention.get"), refetchInterval: 30_000, ...notLive });

export const quota = () => queryOptions({ queryKey: ["quota"], queryFn: () => call("quotas.get") });

/** The body of /healthz, which the contract leaves open. */
export interface Health {
  readonly status: string;
  readonly version: string;
  readonly replica: string;
  readonly backend: string;
  readonly store: {
    readonly reachable: boolean;
    readonly schema?: number;
    readonly epoch?: number;
    readonly durable?: boolean;
  };
  readonly feed?: { readonly blockedBy: string | null };
  readonly due?: readonly string[];
  readonly unserved?: readonly { readonly workflow: string; readonly runs: number; readonly lagMs: number }[];
}
export const health = () =>
  queryOptions({ queryKey: ["healthz"], queryFn: async () => (await call("healthz")) as unknown as Health });

/** Process reports are not in the feed, so no wake hint announces them. */
export const processes = () =>
  queryOptions({ queryKey: ["processes"], queryFn: () => call("processes.list"), refetchInterval: liveMs });

/** A sharded singleton has up to 1,024 of them. */
const namedLeases = 1_000;
export const leases = (includeFree: boolean) =>
  queryOptions({
    queryKey: ["leases", { includeFree }],
    queryFn: async () => {
      const query = { held: includeFree ? undefined : true, limit: 200 };
      // Named leases apart: singletons must not disappear behind the leases of runs.
      const [named, newest] = await Promise.all([
        call("leases.list", { query: { ...query, kind: "name", limit: namedLeases } }),
        call("leases.list", { query }),
      ]);
      return { leases: [...named.leases, ...newest.leases.filter(({ kind }) => kind !== "name")] };
    },
  });

export const leaseTerms = ({ name, kind, journal, token, state }: Lease) =>
  queryOptions({
    queryKey: ["lease terms", journal, token, state],
    queryFn: () =>
      kind === "name"
        ? call("leases.terms", { params: { name: name! } })
        : call("runs.terms", { params: { id: name! } }),
    enabled: name !== null && (kind === "name" || kind === "run"),
  });

/** Counts and waits change without a hint, so they are read again every second or so. */
const queueMs = 2_000;
export const queues = () =>
  queryOptions({ queryKey: ["queues"], queryFn: () => call("queues.list"), refetchInterval: queueMs });

export const queueKeys = (name: string) =>
  queryOptions({
    queryKey: ["queue", name, "keys"],
    queryFn: () => call("queues.keys", { params: { name }, query: { limit: 500 } }),
    refetchInterval: queueMs,
  });

export const queueRuns = (name: string, state: "HELD" | "QUEUED") =>
  queryOptions({
    queryKey: ["queue", name, "runs", state],
    queryFn: () => call("queues.runs", { params: { name }, query: { state, limit: 200 } }),
    refetchInterval: queueMs,
  });

export const builds = () => queryOptions({ queryKey: ["builds"], queryFn: () => call("builds.list") });
export const buildRuns = (build: string) =>
  queryOptions({
    queryKey: ["builds", build, "runs"],
    queryFn: () => call("builds.runs", { params: { build }, query: { limit: 200 } }),
  });

export const sinks = () => queryOptions({ queryKey: ["sinks"], queryFn: () => call("sinks.list") });

export const deadLetters = (name: string, state: DeadLetter["state"]) =>
  queryOptions({
    queryKey: ["sink", name, "letters", state],
    queryFn: () => call("sinks.deadLetters", { params: { name }, query: { state, limit: 200 } }),
    placeholderData: keepPreviousData,
  });

/** Run ids and lease names by journal. They never change. */
export const journalNames = (journals: readonly number[]) =>
  queryOptions({
    queryKey: ["journal names", journals],
    queryFn: () => call("journals.names", { query: { of: journals.join(",") } }),
    enabled: journals.length > 0,
    placeholderData: keepPreviousData,
    ...immutable,
  });

export const latestRuns = (limit: number) =>
  queryOptions({ queryKey: ["runs", "latest", limit], queryFn: () => call("runs.list", { query: { limit } }) });

export const stuckRuns = () =>
  queryOptions({
    queryKey: ["runs", "stuck"],
    queryFn: () => call("runs.list", { query: { status: "STUCK", limit: 100 } }),
  });

export const runPage = (search: RunSearch, before: number | undefined, limit: number) =>
  queryOptions({
    queryKey: ["runs", "page", search, before],
    queryFn: () => call("runs.list", { query: { ...runQuery(search), before, limit } }),
  });

/** Ids of the runs that a bulk action applies to, as of now: the operator confirms exactly these. */
export const matchingRunIds = (search: RunSearch, statuses: readonly string[], limit: number) =>
  queryOptions({
    queryKey: ["runs", "matching", search],
    queryFn: async () => {
      if (statuses.length === 0) return [];
      const query = { ...runQuery(search), status: statuses.join(","), limit };
      return (await call("runs.list", { query })).runs.map(({ id }) => id);
    },
    staleTime: 0,
    ...notLive,
  });

export const run = (id: string) =>
  queryOptions({
    queryKey: ["run", id],
    queryFn: () => call("runs.get", { params: { id } }),
    refetchInterval: (query) => runMs(query.state.data?.endedAt === null),
  });

const params = (id: string) => ({ params: { id } });

export const runHead = ({ id, endedAt }: Run) =>
  queryOptions({
    queryKey: ["run", id, "head"],
    queryFn: () => call("runs.head", params(id)),
    refetchInterval: runMs(endedAt === null),
  });

export const runPosition = ({ id, endedAt, lease }: Run) =>
  queryOptions({
    queryKey: ["run", id, "queue"],
    queryFn: () => call("runs.queue", params(id)),
    refetchInterval: runMs(endedAt === null),
    enabled: endedAt === null && lease.queue !== null,
  });

export const runTerms = ({ id, endedAt }: Run) =>
  queryOptions({
    queryKey: ["run", id, "terms"],
    queryFn: () => call("runs.terms", params(id)),
    refetchInterval: runMs(endedAt === null),
  });

export const runEffects = (id: string) =>
  queryOptions({
    queryKey: ["run", id, "effects"],
    queryFn: () => call("effects.list", { query: { run: id, limit: 500 } }),
  });

/** All effects and obligations of a run, newest first: it may have very many. */
export const runEffectPages = (id: string) =>
  infiniteQueryOptions({
    queryKey: ["run", id, "effect pages"],
    queryFn: ({ pageParam }) =>
      call("effects.list", { query: { run: id, after: pageParam, order: "desc", limit: 200 } }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
    select: ({ pages }) => ({ effects: pages.flatMap((page) => page.effects) }),
  });

export const runGates = (id: string) =>
  queryOptions({
    queryKey: ["run", id, "gates"],
    queryFn: () => call("gates.list", { query: { run: id, open: true } }),
  });

export const runInDoubt = (id: string) =>
  queryOptions({
    queryKey: ["run", id, "in doubt"],
    queryFn: () => call("inDoubt.list", { query: { run: id, limit: 50 } }),
  });

export const runTimers = (id: string) =>
  queryOptions({ queryKey: ["run", id, "timers"], queryFn: () => call("timers.list", { query: { run: id } }) });

export const runTree = (id: string) =>
  queryOptions({ queryKey: ["run", id, "tree"], queryFn: () => call("runs.tree", params(id)) });

export const runBudgets = (id: string) =>
  queryOptions({ queryKey: ["run", id, "budgets"], queryFn: () => call("runs.budgets", params(id)) });

export const runPublished = ({ id, endedAt }: Run) =>
  queryOptions({
    queryKey: ["run", id, "published"],
    queryFn: () => call("runs.published", params(id)),
    refetchInterval: runMs(endedAt === null),
  });

export const runStreams = ({ id, endedAt }: Pick<Run, "id" | "endedAt">) =>
  queryOptions({
    queryKey: ["run", id, "streams"],
    queryFn: () => call("runs.streams", params(id)),
    refetchInterval: runMs(endedAt === null),
  });

/** The latest requests of a run that are shown. */
const requestRows = 20;
export interface RunRequest {
  readonly n: number;
  readonly name: string;
  readonly key: string | undefined;
  readonly at: number;
  readonly reply: "waiting for a reply" | "answered" | "rejected" | "refused";
}

/** Requests in the inbox, newest first. `notes`: how many notes the inbox has. */
export const runRequests = ({ id, notes }: Run) =>
  queryOptions({
    queryKey: ["run", id, "requests", notes],
    queryFn: async (): Promise<RunRequest[]> => {
      const from = Math.max(1, notes - windowRows + 1);
      const { records } = await call("runs.journal", {
        params: { id },
        query: { from, limit: windowRows, inbox: true },
      });
      const requested = records.flatMap((record) => {
        const { asks, name, key } = unwrap(record.data) as { asks?: boolean; name?: string; key?: string };
        return record.kind === "signal.sent" && asks === true
          ? [{ n: record.seq, at: record.at, name: name!, key }]
          : [];
      });
      const latest = requested.toReversed().slice(0, requestRows);
      return Promise.all(latest.map(async (request) => ({ ...request, reply: await replyOf(id, request.n) })));
    },
    enabled: notes > 0,
  });

async function replyOf(id: string, n: number): Promise<RunRequest["reply"]> {
  const { reply } = await call("runs.reply", { params: { id, n } });
  if (reply === undefined) return "waiting for a reply";
  if (reply.refused !== undefined) return "refused";
  return reply.error === undefined ? "answered" : "rejected";
}

export const runRecords = (id: string, from: number, through: number) =>
  queryOptions({
    queryKey: ["run", id, "records", from, through],
    queryFn: () => call("runs.journal", { params: { id }, query: { from, limit: through - from + 1 } }),
    enabled: through >= from,
    ...immutable,
  });

/** The last `run.stuck` record is near the end of the journal: only notes and operator actions follow it. */
const stuckRecords = 50;
export interface StuckReason {
  readonly reason: string;
  readonly detail?: unknown;
  readonly effects?: readonly unknown[];
}
export const stuckReason = (id: string) =>
  queryOptions({
    queryKey: ["run", id, "stuck"],
    queryFn: async () => {
      const { head } = await call("runs.head", params(id));
      const from = Math.max(1, head - stuckRecords);
      const { records } = await call("runs.journal", { params: { id }, query: { from, limit: stuckRecords + 1 } });
      const record = records.findLast(({ kind }) => kind === "run.stuck");
      return (unwrap(record?.data) ?? null) as StuckReason | null;
    },
  });

export const forkPlan = (id: string, at: number | undefined) =>
  queryOptions({
    queryKey: ["run", id, "fork", at],
    queryFn: () => call("runs.forkPlan", { params: { id }, query: { at } }),
    placeholderData: keepPreviousData,
    retry: false,
    ...notLive,
  });

/** Records of an item. An inconclusive observation changes no row: while the item is open, it is read again. */
export const itemRecords = (item: number, changedAt: number, isSettled: boolean) =>
  queryOptions({
    queryKey: ["item", item, "records", changedAt],
    queryFn: () => call("store.journal", { body: { target: { journal: item }, limit: 200 } }),
    ...(isSettled ? notLive : {}),
  });

/** The journal and the inbox of an item, or of the run of an effect without one. */
export const itemEvidence = (journal: number) =>
  queryOptions({
    queryKey: ["item", journal, "evidence"],
    queryFn: async () => {
      const target = { journal };
      const [main, inbox] = await Promise.all([
        call("store.journal", { body: { target, limit: 200 } }),
        call("store.journal", { body: { target, limit: 200, inbox: true } }),
      ]);
      return [...main.records, ...inbox.records];
    },
  });

export const inDoubt = () =>
  queryOptions({ queryKey: ["in doubt"], queryFn: () => call("inDoubt.list", { query: { limit: 100 } }) });

/** The rows alone: cheaper than `inDoubt`, and enough to count and name them. */
export const effectsInDoubt = () =>
  queryOptions({
    queryKey: ["effects", "in doubt"],
    queryFn: () => call("effects.list", { query: { status: "UNKNOWN,STUCK", limit: 100 } }),
  });

export const effectPages = (role: "effect" | "compensation", status: string | undefined) =>
  infiniteQueryOptions({
    queryKey: ["effects", "pages", role, status],
    queryFn: ({ pageParam }) =>
      call("effects.list", { query: { role, status, after: pageParam, order: "desc", limit: 200 } }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
    select: ({ pages }) => ({ effects: pages.flatMap((page) => page.effects) }),
  });

export const openGates = () =>
  queryOptions({
    queryKey: ["gates", "open"],
    queryFn: () => call("gates.list", { query: { open: true, limit: 100 } }),
  });

export const openGatePages = () =>
  infiniteQueryOptions({
    queryKey: ["gates", "pages"],
    queryFn: ({ pageParam }) => call("gates.list", { query: { open: true, after: pageParam, limit: 100 } }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
    select: ({ pages }) => ({ gates: pages.flatMap((page) => page.gates) }),
  });

export const timers = () =>
  queryOptions({ queryKey: ["timers"], queryFn: () => call("timers.list", { query: { limit: 200 } }) });

export const schedules = () => queryOptions({ queryKey: ["schedules"], queryFn: () => call("schedules.list") });

export const values = (prefix: string) =>
  queryOptions({
    queryKey: ["values", prefix],
    queryFn: () => call("values.list", { query: { prefix, limit: 200 } }),
    placeholderData: keepPreviousData,
  });

const versions = 20;
/** The latest versions of a value, up to this one. */
export const valueVersions = (key: string, version: number) =>
  queryOptions({
    queryKey: ["value", key, version],
    queryFn: () =>
      call("values.history", { params: { key }, query: { after: Math.max(0, version - versions), limit: versions } }),
  });

export const budgets = (limit: number) =>
  queryOptions({ queryKey: ["budgets", limit], queryFn: () => call("budgets.list", { query: { limit } }) });

const auditRows = 50;
export const auditPages = () =>
  infiniteQueryOptions({
    queryKey: ["audit"],
    queryFn: ({ pageParam }) => call("audit", { query: { before: pageParam, limit: auditRows } }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ entries }) => (entries.length < auditRows ? undefined : entries.at(-1)?.cursor),
  });

/** The value in which `durable-tape dev` names its faults; null where there is none. */
export const devStage = (key: string) =>
  queryOptions({
    queryKey: ["dev stage"],
    queryFn: async () => {
      const { value } = await call("values.get", { params: { key } });
      return value === undefined || value.deleted ? null : unwrap(value.value);
    },
  });
