import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Places, place } from "./places.ts";
import type { SystemName } from "./system.ts";

/** From an empty folder to the first finished run, packages from npm's cache. */
export interface Install {
  readonly ms: number;
  readonly diskMb: number;
}

const node = process.execPath;
/** The npm that belongs to the shell's Node, run by whatever Node it finds there. */
const npm = (args: readonly string[], cwd: string) => spawnSync("npm", [...args], { cwd, encoding: "utf8" });

/** What is installed, and the smallest program that its documentation begins with: one run with one step. */
const firsts: Readonly<
  Partial<Record<SystemName, { readonly packages: readonly string[]; readonly program: string }>>
> = {
  "tape-sqlite": {
    packages: [],
    program: `import { createRunner, Tape, workflow } from "durable-tape";
const hello = workflow("hello", async (tape, name) => tape.step("greet", () => "hello " + name));
await using app = await Tape.open({ store: "sqlite:./tape.db", runner: createRunner({ workflows: [hello] }) });
console.log(await (await app.start(hello, "Ada")).result());`,
  },
  restate: {
    packages: ["@restatedev/restate-server", "@restatedev/restate-sdk", "@restatedev/restate-sdk-clients"],
    program: `import { spawn } from "node:child_process";
import * as restate from "@restatedev/restate-sdk";
import * as clients from "@restatedev/restate-sdk-clients";
const server = spawn("./node_modules/.bin/restate-server", ["--no-logo"], { detached: true, stdio: "ignore", env: { ...process.env, RESTATE_LOG_FILTER: "error" } });
const hello = restate.service({ name: "hello", handlers: { greet: async (ctx, name) => ctx.run("greet", () => "hello " + name) } });
await restate.serve({ services: [hello], port: 9080 });
const body = JSON.stringify({ uri: "http://127.0.0.1:9080" });
const register = () => fetch("http://127.0.0.1:9070/deployments", { method: "POST", headers: { "content-type": "application/json" }, body });
while (!(await register().then((a) => a.ok, () => false))) await new Promise((resolve) => setTimeout(resolve, 50));
console.log(await clients.connect({ url: "http://127.0.0.1:8080" }).serviceClient({ name: "hello" }).greet("Ada"));
process.kill(-server.pid, "SIGKILL");
process.exit(0);`,
  },
  dbos: {
    packages: ["@dbos-inc/dbos-sdk"],
    program: `import { DBOS } from "@dbos-inc/dbos-sdk";
DBOS.setConfig({ name: "hello", systemDatabaseUrl: process.env.DATABASE, logLevel: "error" });
const hello = DBOS.registerWorkflow((name) => DBOS.runStep(async () => "hello " + name), { name: "hello" });
await DBOS.launch();
console.log(await hello("Ada"));
await DBOS.shutdown();`,
  },
  absurd: {
    packages: ["absurd-sdk", "pg"],
    program: `import { Absurd } from "absurd-sdk";
const app = new Absurd({ db: process.env.DATABASE });
await app.createQueue();
app.registerTask({ name: "hello" }, async ({ name }, ctx) => ctx.step("greet", async () => "hello " + name));
await app.startWorker();
const { taskID } = await app.spawn("hello", { name: "Ada" });
console.log((await app.awaitTaskResult(taskID)).result);
await app.close();`,
  },
  "pg-boss": {
    packages: ["pg-boss"],
    program: `import { PgBoss } from "pg-boss";
const boss = new PgBoss(process.env.DATABASE);
await boss.start();
await boss.createQueue("hello");
const done = Promise.withResolvers();
await boss.send("hello", { name: "Ada" });
await boss.work("hello", async ([job]) => done.resolve("hello " + job.data.name));
console.log(await done.promise);
await boss.stop({ graceful: false });`,
  },
};

/**
 * Untimed once, so that the cache holds everything for everybody, then timed. The database server of those that need
 * one runs already, and so does not count; Restate's server is part of its packages, and does.
 */
export async function measureInstall(
  name: SystemName,
  round: number,
  places: Places,
  versions: Readonly<Record<string, string>>,
  tarball: string,
): Promise<Install | undefined> {
  const first = firsts[name];
  if (first === undefined) return undefined;
  const packages = [
    ...first.packages.map((one) => `${one}@${versions[one]}`),
    ...(first.packages.length ? [] : [tarball]),
  ];
  const spot = await place(name, `install${round}`, places);
  const warm = (tries: number): Install => {
    const folder = join(places.folder, `install-${name}-${round}-${tries}`);
    mkdirSync(folder);
    writeFileSync(join(folder, "package.json"), `{"name":"first","private":true,"type":"module"}`);
    writeFileSync(join(folder, "first.mjs"), first.program);
    try {
      const started = performance.now();
      const installed = npm(
        ["install", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund", ...packages],
        folder,
      );
      if (installed.status !== 0) throw new Error(`${name}: npm install: ${installed.stderr}`);
      if (tries > 0) {
        // A namespace of its own where Restate has one: its server listens on fixed ports and calls home.
        const prefix =
          spot.prefix.length > 0 ? ["unshare", "-n", "--", "sh", "-c", 'ip link set lo up && exec "$0" "$@"'] : [];
        const command = [...prefix, node, "first.mjs"];
        const ran = spawnSync(command[0]!, command.slice(1), {
          cwd: folder,
          encoding: "utf8",
          timeout: 60_000,
          env: { ...process.env, DATABASE: spot.url },
        });
        if (!ran.stdout.includes("hello Ada")) throw new Error(`${name}: first run: ${ran.stdout}\n${ran.stderr}`);
      }
      return { ms: performance.now() - started, diskMb: size(join(folder, "node_modules")) / 1e6 };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  try {
    if (round === 0) warm(0);
    return warm(1);
  } finally {
    await spot.close();
  }
}

/** Bytes of all files below. */
function size(folder: string): number {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath ?? dirname(folder), entry.name)).size, 0);
}
