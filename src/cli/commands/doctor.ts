import { type Clock, systemClock } from "../../base/clock.ts";
import { isFitNode } from "../../base/node-version.ts";
import { errorTable } from "../../model/errors.ts";
import type { Store, StoreSettings } from "../../store/contract/store.ts";
import { lasting } from "../output.ts";
import { readOverview, type StoreOverview } from "./store-overview.ts";

export interface Finding {
  readonly about: string;
  /** look: nothing is broken, but a person should see it. */
  readonly state: "fine" | "look" | "bad";
  readonly says: string;
  readonly next?: string;
}

/** Beyond this people's clocks and the store's tell different stories; leases do not depend on it. */
const maxOffsetMs = 2_000;
/** Work that is due is looked at twice, this far apart: what is still there is what no process works on. */
const recheckAfterMs = 2_500;
/** A holder may be late once; if it is gone for longer, no process has taken its lease over. */
const staleForMs = 60_000;

const meantText = (meant: string | undefined): string => (meant === undefined ? "" : `; did you mean ${meant}?`);

export const unservedText = ({ workflow, runs, meant }: StoreOverview["unserved"][number]): string =>
  `${runs} runs wait for workflow ${workflow}, which no process has${meantText(meant)}`;

const unservedEffectText = ({ effect, items, meant }: StoreOverview["unservedEffects"][number]): string =>
  `${items} calls of effect ${effect} wait, and no process has its definition${meantText(meant)}`;

/** Every check in turn; none changes anything. */
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
    ...failoverFinding(settings),
    await clockFinding(store, clock),
    ...(await work(store, tenant, clock)),
  ];
}

/** The commands do not start on an old one; a program that calls this itself may run on one. */
export function nodeFinding(version = process.versions.node): Finding {
  if (isFitNode(version)) return { about: "node", state: "fine", says: `version ${version}` };
  const { next } = errorTable.TAPE_NODE_OUTDATED;
  return {
    about: "node",
    state: "bad",
    says: `version ${version} has known holes`,
    next: `TAPE_NODE_OUTDATED: ${next}`,
  };
}

function storeFinding({ schema, epoch, durable, facts }: StoreSettings, url: string): Finding {
  const said = `${url}, schema ${schema}, store epoch ${epoch}`;
  if (durable) return { about: "store", state: "fine", says: `${said}, durable` };
  const why = Object.entries(facts).map(([name, value]) => `${name}=${value}`);
  return {
    about: "store",
    state: "bad",
    says: `${said}; a power cut may lose what it has acknowledged (${why.join(", ")})`,
    next: "Make the store durable: synchronous=full on SQLite; fsync, full_page_writes and synchronous_commit on PostgreSQL.",
  };
}

/** Who can read what passes between us and a database server. */
function transportFinding({ facts: { transport } }: StoreSettings): Finding[] {
  if (transport === undefined) return [];
  if (transport === "local" || transport === "tls") {
    const says = transport === "local" ? "does not leave this machine" : "is encrypted, and the server's name checked";
    return [{ about: "connection", state: "fine", says: `what is sent to the database ${says}` }];
  }
  const plain = "what is sent to the database is not encrypted: the network reads the password and all payloads";
  const unverified = "what is sent to the database is encrypted, but the server's certificate was not checked";
  return [
    {
      about: "connection",
      state: "look",
      says: transport === "plain" ? plain : unverified,
      next: "TAPE_STORE_PLAIN: add sslmode=verify-full to the store's URL, and sslrootcert=FILE for an authority of your own (docs/security.md).",
    },
  ];
}

/** Whether a promoted standby has all that was acknowledged, and an isolated primary stops. Only a server has standbys. */
function failoverFinding({ facts }: StoreSettings): Finding[] {
  const { synchronousStandbyNames: names, standbys } = facts;
  if (names === undefined) return [];
  if (names !== "") {
    const says = `a commit waits for a standby (${names}): a failover loses nothing, and a primary that is cut off stops`;
    return [{ about: "failover", state: "fine", says }];
  }
  if (standbys === 0) {
    return [{ about: "failover", state: "fine", says: "no standby follows this server, and none is named" }];
  }
  return [
    {
      about: "failover",
      state: "look",
      says: `${standbys} standbys follow this server, and no commit waits for one: a failover would lose what was acknowledged last, and a primary that is cut off would go on acting`,
      next: "Name a standby in synchronous_standby_names, and stop the old server before you promote another (docs/operating.md).",
    },
  ];
}

async function clockFinding(store: Store, clock: Clock): Promise<Finding> {
  const before = clock.wall();
  const there = await store.read.now();
  const offset = Math.round(there - (before + clock.wall()) / 2);
  const says = `the store's clock is ${Math.abs(offset)} ms ${offset < 0 ? "behind" : "ahead of"} this machine's`;
  if (Math.abs(offset) <= maxOffsetMs) return { about: "clock", state: "fine", says };
  return {
    about: "clock",
    state: "look",
    says,
    next: "Set both clocks by a time server. No lease depends on it, but timers fire by the store's clock.",
  };
}

async function work(store: Store, tenant: string, clock: Clock): Promise<Finding[]> {
  const first = await readOverview(store, tenant);
  if (first.overdue.length > 0) await clock.sleep(recheckAfterMs);
  const second = first.overdue.length > 0 ? await readOverview(store, tenant) : first;
  const waiting = first.overdue.filter((reactor) => second.overdue.includes(reactor));
  const gone = second.stale.filter(({ heldMs, ttlMs }) => heldMs > ttlMs + staleForMs);
  const { doubts, runs, inDoubt } = second;
  const gap = (about: string, fine: string, state: "look" | "bad", trouble: string, next: string): Finding =>
    trouble === "" ? { about, state: "fine", says: fine } : { about, state, says: trouble, next };
  const left = gone.map(({ name, journal, heldMs }) => `${name ?? `item ${journal}`} (${lasting(heldMs)})`);
  const unknown = doubts.effectsUnknown + doubts.obligationsUnknown;
  const stuck = doubts.effectsStuck + doubts.obligationsStuck;
  return [
    gap(
      "reactors",
      "no work is overdue",
      "bad",
      waiting.length === 0 ? "" : `work is due for ${waiting.join(", ")}, and no process takes it`,
      "Start a process that runs them: an app with Tape.open, or tape-reactors. If one runs, all its slots are taken: its log names what hangs (run.hung), durable-tape lease ls shows who holds what for how long; cancel that, or raise concurrency.",
    ),
    gap(
      "workflows",
      "no run waits for a workflow that no process has",
      "bad",
      second.unserved.map(unservedText).join("; "),
      'Start a process whose runner has them, or: durable-tape cancel <run> --reason "…" (durable-tape runs --workflow NAME lists them).',
    ),
    gap(
      "effects",
      "no effect waits for a definition that no process has",
      "bad",
      second.unservedEffects.map(unservedEffectText).join("; "),
      "Start a process whose runner has them: createRunner({ workflows, effects: [NAME] }); or settle them with durable-tape resolve.",
    ),
    gap(
      "leases",
      `${second.held} held, none by a process that is long gone`,
      "look",
      left.length === 0 ? "" : `${left.join(", ")}: the holder is gone`,
      'Recovery takes them over once it runs; by hand: durable-tape lease release <lease> --reason "…".',
    ),
    gap(
      "doubts",
      "nothing is UNKNOWN or STUCK",
      "look",
      inDoubt === 0 ? "" : `${runs.STUCK ?? 0} runs STUCK, ${unknown} acts UNKNOWN, ${stuck} STUCK`,
      "See durable-tape effects --status UNKNOWN,STUCK; settle with durable-tape resolve.",
    ),
  ];
}
