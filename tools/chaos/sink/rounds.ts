import { startPostgres } from "../../../test/postgres/server.ts";
import { failoverFault } from "../faults/database.ts";
import { Pair } from "../pair.ts";
import { postgresPlace, shortTtl, sqlitePlace } from "../places.ts";
import { onPostgres, type Round, settingOf } from "../rounds.ts";
import { runSinkRound } from "./round.ts";

/** Fan-outs and workers on one file. */
export const sqliteSink: Round = {
  name: "a sink on SQLite",
  group: "sink",
  store: "sqlite",
  share: 0.2,
  run(setting) {
    const place = sqlitePlace(setting.folder);
    return runSinkRound({ ...settingOf(setting), name: this.name, place, ttlMs: shortTtl() });
  },
};

/** Fan-outs and workers on one database. */
export const postgresSink: Round = {
  name: "a sink on PostgreSQL",
  group: "sink",
  store: "postgres",
  share: 0.1,
  async run(setting) {
    return onPostgres(await startPostgres({ major: 18, settings: {} }), async (server) => {
      const ttlMs = shortTtl();
      const place = await postgresPlace(server.url, 0, ttlMs);
      try {
        return await runSinkRound({ ...settingOf(setting), name: this.name, place, ttlMs });
      } finally {
        await place.close();
      }
    });
  },
};

/** The primary dies, and its standby lacks what was written last: some of it was already sent. */
export const failoverSink: Round = {
  name: "a sink, and failovers to an asynchronous standby",
  group: "sink",
  store: "postgres",
  share: 0.1,
  async run(setting) {
    const pair = await Pair.start(false);
    try {
      const ttlMs = shortTtl();
      const place = await postgresPlace(pair.primary.url, 0, ttlMs);
      try {
        return await runSinkRound({
          ...settingOf(setting),
          ...{ name: this.name, place, ttlMs, loss: true },
          more: (deployment) => [
            failoverFault(
              deployment,
              pair,
              () => place.retarget(pair.primary.url),
              async () => (await deployment.holder()) !== undefined,
            ),
          ],
        });
      } finally {
        await place.close();
      }
    } finally {
      await pair.stop();
    }
  },
};
