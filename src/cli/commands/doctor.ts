import { type Clock, systemClock } from "../../base/clock.ts";
import { isFitNode } from "../../base/node-version.ts";
import { errorTable } from "../../model/errors.ts";
import type { Store, StoreSettings } from "../../store/contract/store.ts";
import { lasting } from "../output.ts";
import { queueFindings } from "./doctor-queues.ts";
import { retentionFindings } from "./doctor-retention.ts";
import { sinkFindings } from "./doctor-sinks.ts";
import { type Finding, finding, meantText } from "./finding.ts";
import { shardFindings } from "./shards.ts";
import { readOverview, type StoreOverview } from "./store-overview.ts";

/** A larger offset makes times in logs and in the store hard to compare; leases do not depend on it. */
const maxOffsetMs = 2_000;
/** Overdue work is read twice, this far apart: work that is overdue both times has no process. */
const recheckAfterMs = 2_500;
/** A holder may renew late once; a lease that expired longer ago has not been taken over by any process. */
const staleForMs = 60_000;

/** Enough to find the cause; a thousand runs usually hang for the same one. */
const maxNamed = 10;
const more = ({ length }: readonly string[]): string => (length > maxNamed ? ` and ${length - maxNamed} more` : "");

export function unservedText({ workflow, build, runs, suggestion }: StoreOverview["unserved"][number]): string {
  const waits = `${runs} ${runs === 1 ? "run waits" : "runs wait"} for workflow ${workflow}`;
  if (build === undefined) return `${waits}, which no process has${meantText(suggestion)}`;
  return `${waits} of build ${build}, which no process has: start one, or move them (durable-tape builds move)`;
}

const unservedEffectText = ({ effect, items, suggestion }: StoreOverview["unservedEffects"][number]): string =>
  `${items} ${items === 1 ? "call waits" : "calls wait"} for effect ${effect}, which no process defines${meantText(suggestion)}`;

/** Runs every check; none changes anything. */
export async function diagnose(
  store: Store,
  tenant: string,
  url: string,
  clock: Clock = systemClock,
): Promise<Finding[]> {
  const settings = await store.read.settings();
  return [
    nodeFinding(),
    storeFinding(settings, url),
    ...transportFinding(settings),
    ...serversFinding(settings),
    ...failoverFinding(settings),
    ...(await shardFindings(store)),
    await clockFinding(store, clock),
    ...(await workFindings(store, tenant, clock)),
    ...(await queueFindings(store, tenant, clock)),
    ...(await sinkFindings(store, tenant)),
    ...(await retentionFindings(store, tenant)),
  ];
}

/** The commands do not start on an outdated Node, but a program that calls this may run on one. */
export function nodeFinding(version = process.versions.node): Finding {
  if (isFitNode(version)) return { check: "node", state: "ok", message: `version ${version}` };
  const { next } = errorTable.TAPE_NODE_OUTDATED;
  return {
    check: "node",
    state: "fail",
    message: `version ${version} has known vulnerabilities`,
    next: `TAPE_NODE_OUTDATED: ${next}`,
  };
}

function storeFinding({ schema, epoch, durable, facts }: StoreSettings, url: string): Finding {
  const summary = `${url}, schema ${schema}, store epoch ${epoch}`;
  if (durable) return { check: "store", state: "ok", message: `${summary}, durable` };
  const causes = Object.entries(facts).map(([name, value]) => `${name}=${value}`);
  return {
    check: "store",
    state: "fail",
    message: `${summary}; a power failure may lose acknowledged writes (${causes.join(", ")})`,
    next: "Make the store durable: synchronous=full on SQLite; fsync, full_page_writes and synchronous_commit on PostgreSQL.",
  };
}

/** Whether the network can read the connection to a database server. */
function transportFinding({ facts: { transport } }: StoreSettings): Finding[] {
  if (transport === undefined) return [];
  if (transport === "local" || transport === "tls") {
    const message =
      transport === "local"
        ? "the database connection stays on this machine"
        : "the database connection is encrypted and the server's name is verified";
    return [{ check: "connection", state: "ok", message }];
  }
  const plain = "the database connection is not encrypted: the network can read the password and all payloads";
  const unverified = "the database connection is encrypted, but the server's certificate is not verified";
  return [
    {
      check: "connection",
      state: "warn",
      message: transport === "plain" ? plain : unverified,
      next: "TAPE_STORE_PLAIN: add sslmode=verify-full to the store's URL, and sslrootcert=FILE for your own certificate authority (docs/security.md).",
    },
  ];
}

/** What each host of a URL with several answered. */
function serversFinding({ facts: { server, servers } }: StoreSettings): Finding[] {
  if (server === undefined) return [];
  const message = `${server} accepts writes (${servers})`;
  const writable = String(servers).split("accepts writes").length - 1;
  if (writable > 1) {
    const next = "Stop the former primary: what it accepts is lost when it rejoins the cluster (docs/failover.md).";
    return [{ check: "servers", state: "fail", message: `two servers accept writes: ${servers}`, next }];
  }
  if (!/ failed: | did not answer/.test(String(servers))) return [{ check: "servers", state: "ok", message }];
  const next = "Start the server that does not answer, or remove it from the URL: a failover may need it.";
  return [{ check: "servers", state: "warn", message, next }];
}

/** Whether a promoted standby has every acknowledged write and an isolated primary stops. Only a server has standbys. */
function failoverFinding({ facts }: StoreSettings): Finding[] {
  const { synchronousStandbyNames: names, standbys } = facts;
  if (names === undefined) return [];
  if (names !== "") {
    const message = `commits wait for a standby (${names}): a failover loses nothing, and an isolated primary stops`;
    return [{ check: "failover", state: "ok", message }];
  }
  if (standbys === 0) {
    return [{ check: "failover", state: "ok", message: "this server has no standby" }];
  }
  return [
    {
      check: "failover",
      state: "warn",
      message: `${standbys} ${standbys === 1 ? "standby follows" : "standbys follow"} this server, but commits do not wait for one: a failover would lose the latest acknowledged writes, and an isolated primary would continue to run effects`,
      next: "Name a standby in synchronous_standby_names, and stop the old server before you promote another (docs/operating.md).",
    },
  ];
}

async function clockFinding(store: Store, clock: Clock): Promise<Finding> {
  const before = clock.wall();
  const there = await store.read.now();
  const offset = Math.round(there - (before + clock.wall()) / 2);
  const message = `the store's clock is ${Math.abs(offset)} ms ${offset < 0 ? "behind" : "ahead of"} this machine's`;
  if (Math.abs(offset) <= maxOffsetMs) return { check: "clock", state: "ok", message };
  return {
    check: "clock",
    state: "warn",
    message,
    next: "Synchronise both clocks with a time server. Leases do not depend on it, but timers fire by the store's clock.",
  };
}

async function workFindings(store: Store, tenant: string, clock: Clock): Promise<Finding[]> {
  const first = await readOverview(store, tenant);
  if (first.overdue.length > 0) await clock.sleep(recheckAfterMs);
  const second = first.overdue.length > 0 ? await readOverview(store, tenant) : first;
  const overdue = first.overdue.filter((reactor) => second.overdue.includes(reactor));
  const abandoned = second.stale.filter(({ heldMs, ttlMs }) => heldMs > ttlMs + staleForMs);
  const { inDoubt, runs, needsAttention } = second;
  const leases = abandoned.map(({ name, journal, heldMs }) => `${name ?? `item ${journal}`} (${lasting(heldMs)})`);
  const silent = second.silent.map(
    ({ name, label, progressAgoMs }) => `${name} on ${label} (${lasting(progressAgoMs)})`,
  );
  const unknown = inDoubt.effectsUnknown + inDoubt.obligationsUnknown;
  const stuck = inDoubt.effectsStuck + inDoubt.obligationsStuck;
  return [
    finding(
      "reactors",
      "no work is overdue",
      "fail",
      overdue.length === 0 ? "" : `work is due for ${overdue.join(", ")}, but no process claims it`,
      "Start a process that runs these reactors: an app with Tape.open, or tape-reactors. If one is running, all its slots are busy: its log names what hangs (run.hung), and durable-tape lease ls shows each holder. Cancel the hanging run, or raise concurrency.",
    ),
    finding(
      "workflows",
      "every waiting run has a process with its workflow",
      "fail",
      second.unserved.map(unservedText).join("; "),
      'Start a process whose runner has them, or: durable-tape cancel <run> --reason "…" (durable-tape runs --workflow NAME lists them).',
    ),
    finding(
      "effects",
      "every waiting effect has a process that defines it",
      "fail",
      second.unservedEffects.map(unservedEffectText).join("; "),
      "Start a process whose runner has them: createRunner({ workflows, effects: [NAME] }); or settle them with durable-tape resolve.",
    ),
    finding(
      "leases",
      `${second.held} held, none abandoned`,
      "warn",
      leases.length === 0 ? "" : `abandoned by an expired holder: ${leases.join(", ")}`,
      'Start recovery, which takes them over; or free one yourself: durable-tape lease release <lease> --reason "…".',
    ),
    finding(
      "progress",
      "every running run has made progress within ten minutes",
      "warn",
      silent.length === 0 ? "" : `running without progress: ${silent.slice(0, maxNamed).join(", ")}${more(silent)}`,
      "Find out what the step does (the log of its process says run.hung). Give it a timeout, or its workflow a maxStall; durable-tape cancel ends the run.",
    ),
    finding(
      "attention",
      "nothing is UNKNOWN or STUCK",
      "warn",
      needsAttention === 0 ? "" : `runs: ${runs.STUCK ?? 0} STUCK; effects: ${unknown} UNKNOWN, ${stuck} STUCK`,
      "List them with durable-tape effects --status UNKNOWN,STUCK; settle each with durable-tape resolve.",
    ),
  ];
}
