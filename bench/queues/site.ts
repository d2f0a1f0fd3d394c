import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type PostgresServer, startPostgres } from "../../test/postgres/server.ts";
import { installPeers } from "../peers/peers.ts";
import { createDatabase, execute } from "../peers/places.ts";
import { isOurQueue, type Limits, type QueueSettings, type QueueSystemName } from "../peers/queues/system.ts";
import type { QueueAsk } from "../peers/queues/worker.ts";
import { WorkerProcess } from "../peers/worker-process.ts";
import { say } from "../work.ts";
import { redisProgram, startRedis } from "./redis.ts";

export type QueueProcess = WorkerProcess<QueueAsk>;

/** One queue of one system, empty at first, and the processes that are started on it. */
export interface Place {
  readonly url: string;
  readonly ledger: string;
  /** `starter`: it starts jobs and executes none. */
  start(role: "worker" | "starter"): Promise<QueueProcess>;
}

export interface PlaceOptions {
  readonly limits: Limits;
  /** Jobs note when they enter and leave. */
  readonly ledger?: boolean;
  readonly ttlSeconds?: number;
}

/** Where the systems of one benchmark keep what they write: one PostgreSQL for all of them, a folder, a Redis. */
export class Site {
  readonly notRun: Partial<Record<QueueSystemName, string>> = {};
  readonly #postgres: PostgresServer | undefined;
  readonly #folder = mkdtempSync(join(tmpdir(), "tape-queues-"));
  #places = 0;

  private constructor(postgres: PostgresServer | undefined) {
    this.#postgres = postgres;
  }

  static async open(systems: readonly QueueSystemName[]): Promise<Site> {
    if (!systems.every(isOurQueue)) installPeers();
    const needed = systems.some((system) => system !== "tape-sqlite" && system !== "bullmq");
    const site = new Site(needed ? await startPostgres({ major: 18, settings: {} }) : undefined);
    if (systems.includes("bullmq") && redisProgram() === undefined) {
      site.notRun.bullmq = "there is no redis-server here: install Debian's redis-server";
      say(`NOT RUN bullmq: ${site.notRun.bullmq}`);
    }
    return site;
  }

  async close(): Promise<void> {
    await this.#postgres?.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** A fresh place, gone with all its processes when `work` is through. */
  async at<T>(system: QueueSystemName, options: PlaceOptions, work: (place: Place) => Promise<T>): Promise<T> {
    const nr = ++this.#places;
    const folder = join(this.#folder, String(nr));
    mkdirSync(folder);
    const ledger = join(folder, "ledger.txt");
    const processes: QueueProcess[] = [];
    const opened = await this.#address(system, nr, folder, options);
    const { limits, ttlSeconds } = options;
    const settings: QueueSettings = {
      system,
      url: opened.url,
      limits,
      ...(options.ledger && { ledger }),
      ...(ttlSeconds !== undefined && { ttlSeconds }),
    };
    try {
      return await work({
        url: opened.url,
        ledger,
        async start(role) {
          const program = "queues/worker.ts";
          const own: QueueSettings = { ...settings, starts: role === "starter" };
          const started = await WorkerProcess.run<QueueAsk>(own, { program });
          processes.push(started);
          return started;
        },
      });
    } finally {
      await Promise.all(processes.map((process) => process.kill()));
      await opened.close();
      rmSync(folder, { recursive: true, force: true });
    }
  }

  async #address(
    system: QueueSystemName,
    nr: number,
    folder: string,
    { ttlSeconds }: PlaceOptions,
  ): Promise<{ readonly url: string; close(): Promise<void> }> {
    if (system === "tape-sqlite") return { url: `sqlite:${join(folder, "tape.db")}`, close: async () => {} };
    if (system === "bullmq") return startRedis(folder);
    const server = this.#postgres!.url;
    const database = `queues_${nr}`;
    const url = await createDatabase(server, database);
    // What others wrote before is on the disk by now, and costs this one nothing.
    await execute(server, "checkpoint");
    return {
      // A lease must be longer than any transaction may take.
      url: isOurQueue(system) && ttlSeconds !== undefined ? `${url}?transaction_bound_ms=1000` : url,
      close: () => execute(server, `drop database "${database}" with (force)`),
    };
  }
}
