import { startPostgres } from "../../../test/postgres/server.ts";
import { postgresPlace, shortTtl, sqlitePlace } from "../places.ts";
import { onPostgres, type Round, settingOf } from "../rounds.ts";
import { runPushRound } from "./round.ts";

/** Handlers and writers on one file. */
export const sqlitePush: Round = {
  name: "push handlers on SQLite",
  group: "push",
  store: "sqlite",
  share: 0.2,
  run(setting) {
    const place = sqlitePlace(setting.folder);
    return runPushRound({ ...settingOf(setting), name: this.name, place, ttlMs: shortTtl() });
  },
};

/** Handlers and writers on one database. */
export const postgresPush: Round = {
  name: "push handlers on PostgreSQL",
  group: "push",
  store: "postgres",
  share: 0.1,
  async run(setting) {
    return onPostgres(await startPostgres({ major: 18, settings: {} }), async (server) => {
      const ttlMs = shortTtl();
      const place = await postgresPlace(server.url, 3, ttlMs);
      try {
        return await runPushRound({ ...settingOf(setting), name: this.name, place, ttlMs });
      } finally {
        await place.close();
      }
    });
  },
};
