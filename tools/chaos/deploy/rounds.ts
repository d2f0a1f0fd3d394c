import { systemClock } from "../../../src/base/clock.ts";
import { freshDatabase } from "../../../test/postgres/database.ts";
import { startPostgres } from "../../../test/postgres/server.ts";
import { shortTtl, sqlitePlace } from "../places.ts";
import type { RoundReport } from "../round.ts";
import { onPostgres, type Round, type RoundSetting } from "../rounds.ts";
import { killKind, rollingDeploy } from "./rolling.ts";

/** Three processes of each build and 1,000 live runs, as docs/builds.md reports them. */
const [processes, runs, later] = [3, 1_000, 100];

async function deployOn(name: string, url: string, { folder, progress }: RoundSetting): Promise<RoundReport> {
  const from = systemClock.mono();
  const ttlMs = shortTtl();
  const report = await rollingDeploy({ url, folder, ttlMs, processes, runs, later, ...(progress && { progress }) });
  const { rules, kill, deployMs, drainMs, terms } = report;
  const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
  return {
    name,
    seconds: Math.round((systemClock.mono() - from) / 1_000),
    violations: [...rules.flatMap(({ broken }) => broken), ...(kill.effective ? [] : [`${killKind}: it held nothing`])],
    injections: [kill],
    faults: [{ kind: killKind, effectiveWhen: "the process held leases, and runs of its build were live" }],
    notRun: [],
    states: {},
    rules,
    lost: [],
    lines: [
      `${processes} processes of each build, ${runs} runs of the old one, ${later} new runs, ${terms} terms`,
      `the old processes had ended ${seconds(deployMs)} after the first process of the new build started, ${seconds(drainMs)} after the last signal`,
    ],
  };
}

export const sqliteDeploy: Round = {
  name: "rolling deploy on SQLite",
  group: "deploy",
  store: "sqlite",
  share: 0,
  run(setting) {
    return deployOn(this.name, sqlitePlace(setting.folder).urlFor(0), setting);
  },
};

export const postgresDeploy: Round = {
  name: "rolling deploy on PostgreSQL",
  group: "deploy",
  store: "postgres",
  share: 0,
  async run(setting) {
    return onPostgres(await startPostgres({ major: 18, settings: {} }), async (server) =>
      deployOn(this.name, await freshDatabase(server.url), setting),
    );
  },
};
