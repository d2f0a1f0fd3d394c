import pg from "pg";
import { systemClock } from "../../../src/base/clock.ts";
import type { PostgresProxy } from "../../../test/postgres/proxy.ts";
import { anyOf, type Deployment, type Fault, holding } from "../strike.ts";

export const cutKind = "connection cut before a request";
export const lostAnswerKind = "connection cut between request and answer";
export const holeKind = "black hole past the TTL";
export const terminateKind = "pg_terminate_backend";

/** How long a cut waits for a request that it is about. */
const patienceMs = 2_500;

/** One line between somebody and the database. `worker`: whose leases it carries; undefined where it carries many's. */
export interface Line {
  readonly proxy: PostgresProxy;
  readonly worker: () => string | undefined;
}

export function connectionFaults(deployment: Deployment, lines: readonly Line[], admin: () => string): Fault[] {
  const { strikes } = deployment;
  const cut = cutsOf(deployment, lines);
  return [
    {
      kind: cutKind,
      counts: "a request of a worker never reached the server",
      weight: 1,
      play: cut(cutKind, "a request that the server never saw", (proxy) => proxy.cutBeforeRequest(/./s)),
    },
    {
      kind: lostAnswerKind,
      counts: "the server carried out a commit or an append whose answer nobody got",
      weight: 2,
      first: 2,
      play: cut(lostAnswerKind, "a commit or an append that was carried out", (proxy) =>
        proxy.cutAfterRequest(/^commit|tape\.append/),
      ),
    },
    {
      kind: holeKind,
      counts: "nothing passed for longer than the TTL on the line of a holder of leases",
      weight: 1,
      play: () => openHole(deployment, lines),
    },
    {
      kind: terminateKind,
      counts: "the server ended at least one connection of ours",
      weight: 1,
      async play() {
        const ended = await terminate(admin());
        strikes.push({
          kind: terminateKind,
          bitten: ended.length > 0,
          hit: ended.map((state) => `a connection that was ${state}`),
          outcome: ["the connection was gone"],
        });
      },
    },
  ];
}

/** Faults that arm a proxy and wait until a request meets it. */
function cutsOf({ random, strikes }: Deployment, lines: readonly Line[]) {
  return (kind: string, what: string, arm: (proxy: PostgresProxy) => Promise<void>): Fault["play"] => {
    const armed = new Set<PostgresProxy>();
    return async () => {
      const line = anyOf(
        lines.filter(({ proxy }) => !armed.has(proxy)),
        random,
      );
      if (line === undefined) return;
      armed.add(line.proxy);
      const patience = new AbortController();
      const bitten = arm(line.proxy).then(
        () => {
          armed.delete(line.proxy);
          patience.abort();
          strikes.push({ kind, bitten: true, hit: [what], outcome: ["the connection was gone"] });
        },
        () => {}, // closed before a request came
      );
      await Promise.race([bitten, systemClock.sleep(patienceMs, patience.signal)]);
    };
  };
}

interface HolderLine {
  readonly line: Line;
  readonly worker: string | undefined;
  readonly leases: Readonly<Record<string, number>>;
}

/** If possible the line of a holder of leases. */
async function lineOfHolder(deployment: Deployment, lines: readonly Line[]): Promise<HolderLine | undefined> {
  const up = new Set(deployment.replicas.filter((replica) => replica.up).map(({ label }) => label));
  let found: HolderLine | undefined;
  for (let tries = 0; tries < 10; tries++) {
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
  const { random, ttlMs, strikes } = deployment;
  const found = await lineOfHolder(deployment, lines);
  if (found === undefined) return;
  const { line, worker, leases } = found;
  const held = worker === undefined || Object.keys(leases).length > 0;
  const late = random.float() < 0.5;
  line.proxy.hang(true);
  const mend = async (): Promise<void> => {
    await systemClock.sleep(ttlMs * (1.2 + 0.6 * random.float()));
    if (!late) line.proxy.cut();
    line.proxy.hang(false);
    strikes.push({
      kind: holeKind,
      bitten: held,
      hit: worker === undefined ? ["a server's line"] : held ? holding(leases) : ["holding nothing"],
      outcome: [late ? "everything arrived late" : "the connections broke in the end"],
    });
  };
  deployment.mend(mend());
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
