import { type Clock, systemClock } from "../../base/clock.ts";
import { type Log, silentLog } from "../../base/log.ts";
import { type Random, systemRandom } from "../../base/random.ts";
import { TapeError } from "../../model/errors.ts";
import { defaultLimits, type Limits } from "../../model/limits.ts";
import type { Store } from "../contract.ts";
import { assembleStore } from "../sql/assemble.ts";
import type { Row } from "../sql/plan.ts";
import { appendPlan } from "../sql/plans/append.ts";
import { restoredPlan } from "../sql/plans/claim.ts";
import { Wakes } from "../wakes.ts";
import { Appender } from "./appender.ts";
import { Connections } from "./connections.ts";
import { PostgresDriver } from "./driver.ts";
import { faultOf, unreachable } from "./faults.ts";
import { Journals } from "./journals.ts";
import { migrate } from "./migrate.ts";
import { Notifier } from "./notifier.ts";
import { parsePostgresUrl } from "./url.ts";
import { Writer } from "./writer.ts";

export interface PostgresOptions {
  readonly url: string;
  readonly limits?: Partial<Limits>;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
}

/** Witnesses are asked after within seconds; after ten minutes nobody does. */
const witnessMs = 600_000;
const purgeEveryMs = 60_000;
const oldestServer = 140_000;

export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { clock = systemClock, random = systemRandom, log = silentLog } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const connections = new Connections(parsePostgresUrl(options.url));
  try {
    const schema = await prepare(connections);
    const durable = await checkServer(connections, log);
    const wakes = new Wakes((error) => log("error", "wake.listener_failed", { error: String(error) }));
    const notifier = new Notifier({ connections, wakes, clock, random, log });
    const journals = new Journals(connections);
    let suspect = true;
    const writer: Writer = new Writer({
      connections,
      journals,
      clock,
      random,
      limits,
      wake: (wake) => notifier.send(wake),
      onBroken: () => {
        suspect = true;
      },
    });
    // After a broken connection the address may lead to a promoted standby: look before the next term is granted.
    const lookAgain = async (): Promise<void> => {
      if (!suspect) return;
      suspect = false;
      await noticeTimeline(connections, writer, log);
    };
    await lookAgain();
    const appender = new Appender({
      connections,
      writer,
      clock,
      random,
      limits,
      alone: (fence, entry) => writer.transact((ground) => appendPlan(ground, fence, entry)),
    });
    const stop = purgeWitnesses(connections, clock);
    return assembleStore(
      new PostgresDriver({
        connections,
        writer,
        appender,
        notifier,
        wakes,
        limits,
        clock,
        schema,
        durable,
        stop,
        lookAgain,
      }),
      random,
    );
  } catch (error) {
    await connections.close();
    if (error instanceof TapeError) throw error;
    throw faultOf(error).kind === "connection" ? unreachable(error) : error;
  }
}

async function prepare(connections: Connections): Promise<number> {
  const client = await connections.pool.connect();
  try {
    const { rows } = await client.query(
      "select current_setting('server_version_num')::int as version, pg_is_in_recovery() as standby",
    );
    const { version, standby } = rows[0] as { version: number; standby: boolean };
    if (version < oldestServer) {
      throw new TapeError("TAPE_STORE_UNSAFE", `PostgreSQL 14 or newer is needed, this is ${version}`, { version });
    }
    if (standby) throw new TapeError("TAPE_STORE_UNREACHABLE", "this server is a standby: connect to the primary");
    return await migrate(client, connections.settings.schema);
  } finally {
    client.release();
  }
}

/** A server that loses acknowledged commits in a crash breaks every promise; somebody has to accept that by name. */
async function checkServer(connections: Connections, log: Log): Promise<boolean> {
  const row = await metaOf(connections);
  const unsafe = (["fsync", "full_page_writes"] as const).filter((setting) => row[setting] !== "on");
  if (unsafe.length === 0) return true;
  const message = `the server runs with ${unsafe.map((setting) => `${setting}=${row[setting]}`).join(", ")}`;
  if (!connections.settings.acceptLoss) {
    throw new TapeError(
      "TAPE_STORE_UNSAFE",
      `${message}: a crash loses acknowledged writes (accept_loss=true accepts it)`,
      {
        settings: unsafe,
      },
    );
  }
  log("warn", "store.unsafe", { settings: unsafe });
  return false;
}

/** A promoted standby may have lost commits, and tokens with them: raise the epoch before any is issued again. */
async function noticeTimeline(connections: Connections, writer: Writer, log: Log): Promise<void> {
  const { timeline, timeline_now: current } = await metaOf(connections);
  if (timeline === null || current === null || timeline === current) return;
  const raised = await writer.transact(() => restoredPlan(`timeline ${timeline} became ${current}`, "meta.promoted"));
  if (raised !== undefined) log("warn", "store.epoch_raised", { epoch: raised.epoch, timeline: current });
}

async function metaOf(connections: Connections): Promise<Row> {
  const { rows } = await connections.query(connections.pool, "meta.get", {});
  if (rows[0] === undefined) throw new TapeError("TAPE_INVARIANT", "the store has no meta row");
  return rows[0];
}

function purgeWitnesses(connections: Connections, clock: Clock): () => void {
  let cancel = () => {};
  const again = (): void => {
    cancel = clock.after(purgeEveryMs, () => {
      connections.query(connections.pool, "witness.purge", { olderMs: witnessMs }).then(again, again);
    });
  };
  again();
  return () => cancel();
}
