import pg from "pg";
import { systemClock } from "../../../src/base/clock.ts";
import type { PostgresProxy } from "../../../test/postgres/proxy.ts";
import { anyOf, type Deployment, type Fault, holding } from "../fault.ts";

export const cutKind = "connection cut before a request";
export const lostResponseKind = "connection cut between request and response";
export const holeKind = "black hole past the TTL";
export const terminateKind = "pg_terminate_backend";

/** How long a cut waits for a matching request. */
const patienceMs = 2_500;

/** One proxied connection to the database. `worker`: the process that uses it; undefined for a server, which many use. */
export interface Line {
  readonly proxy: PostgresProxy;
  readonly worker: () => string | undefined;
}

export function connectionFaults(deployment: Deployment, lines: readonly Line[], admin: () => string): Fault[] {
  const { injections } = deployment;
  const cut = cutsOf(deployment, lines);
  return [
    {
      kind: cutKind,
      effectiveWhen: "a request of a worker never reached the server",
      weight: 1,
      inject: cut(cutKind, "a request that the server never saw", (proxy) => proxy.cutBeforeRequest(/./s)),
    },
    {
      kind: lostResponseKind,
      effectiveWhen: "the server carried out a commit or an append whose response was lost",
      weight: 2,
      initial: 2,
      inject: cut(lostResponseKind, "a commit or an append that was carried out", (proxy) =>
        proxy.cutAfterRequest(/^commit|tape\.append/),
      ),
    },
    {
      kind: holeKind,
      effectiveWhen: "nothing passed for longer than the TTL on the connection of a lease holder",
      weight: 1,
      inject: () => openHole(deployment, lines),
    },
    {
      kind: terminateKind,
      effectiveWhen: "the server ended at least one connection of ours",
      weight: 1,
      async inject() {
        const ended = await terminate(admin());
        injections.push({
          kind: terminateKind,
          effective: ended.length > 0,
          hit: ended.map((state) => `a connection that was ${state}`),
          outcome: ["the connection was lost"],
        });
      },
    },
  ];
}

/** Faults that arm a proxy and wait for a matching request. */
function cutsOf({ random, injections }: Deployment, lines: readonly Line[]) {
  return (kind: string, what: string, arm: (proxy: PostgresProxy) => Promise<void>): Fault["inject"] => {
    const armed = new Set<PostgresProxy>();
    return async () => {
      const line = anyOf(
        lines.filter(({ proxy }) => !armed.has(proxy)),
        random,
      );
      if (line === undefined) return;
      armed.add(line.proxy);
      const patience = new AbortController();
      const effective = arm(line.proxy).then(
        () => {
          armed.delete(line.proxy);
          patience.abort();
          injections.push({ kind, effective: true, hit: [what], outcome: ["the connection was lost"] });
        },
        () => {}, // closed before a request came
      );
      await Promise.race([effective, systemClock.sleep(patienceMs, patience.signal)]);
    };
  };
}

interface HolderLine {
  readonly line: Line;
  readonly worker: string | undefined;
  readonly leases: Readonly<Record<string, number>>;
}

/** The connection of a lease holder, if there is one. */
async function lineOfHolder(deployment: Deployment, lines: readonly Line[]): Promise<HolderLine | undefined> {
  const up = new Set(deployment.replicas.filter((replica) => replica.up).map(({ label }) => label));
  let found: HolderLine | undefined;
  for (let attempt = 0; attempt < 10; attempt++) {
    const line = anyOf(lines, deployment.random);
    if (line === undefined) return undefined;
    const worker = line.worker();
    if (worker === undefined) return { line, worker, leases: {} };
    if (!up.has(worker)) continue;
    found = { line, worker, leases: await deployment.leasesOf(worker) };
    if (Object.keys(found.leases).length > 0) break;
  }
  return found;
}

async function openHole(deployment: Deployment, lines: readonly Line[]): Promise<void> {
  const { random, ttlMs, injections } = deployment;
  const found = await lineOfHolder(deployment, lines);
  if (found === undefined) return;
  const { line, worker, leases } = found;
  const held = worker === undefined || Object.keys(leases).length > 0;
  const late = random.float() < 0.5;
  line.proxy.hang(true);
  const repair = async (): Promise<void> => {
    await systemClock.sleep(ttlMs * (1.2 + 0.6 * random.float()));
    if (!late) line.proxy.cut();
    line.proxy.hang(false);
    injections.push({
      kind: holeKind,
      effective: held,
      hit: worker === undefined ? ["a server's connection"] : held ? holding(leases) : ["holding nothing"],
      outcome: [late ? "everything arrived late" : "the connections broke"],
    });
  };
  deployment.repair(repair());
}

async function terminate(url: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url, application_name: "tape chaos" });
  client.on("error", () => {});
  await client.connect();
  try {
    const { rows } = await client.query<{ state: string; cut: boolean }>(
      `select state, pg_terminate_backend(pid) as cut from (
         select pid, state from pg_stat_activity
         where datname = current_database() and application_name = 'durable-tape' and state is not null
         order by state = 'idle', random() limit 2) victims`,
    );
    return rows.filter(({ cut }) => cut).map(({ state }) => state);
  } finally {
    await client.end();
  }
}
