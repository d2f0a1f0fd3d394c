import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Example, examplesIn } from "../docs/examples.ts";
import { findPubsubEmulator } from "./servers/programs.ts";
import { type Broker, startKafkaMock, startNats, startPubsubEmulator, startRedis } from "./servers/servers.ts";

const run = promisify(execFile);
const here = import.meta.dirname;
const root = join(here, "../..");

/** What each example prints, the variable by which it finds its server, and the server. */
const expected: Readonly<
  Record<string, { prints: readonly string[]; variable: string; start: () => Promise<Broker> }>
> = {
  "broker-nats": {
    prints: ["tape.default.hello.run.created", "tape.default.hello.run.ended"],
    ...{ variable: "NATS_URL", start: startNats },
  },
  "broker-redis": {
    prints: ["dev.tape.run.created greet-ada", "dev.tape.run.ended greet-ada"],
    ...{ variable: "REDIS_URL", start: startRedis },
  },
  "broker-kafka": { prints: ["2"], variable: "KAFKA_BROKERS", start: startKafkaMock },
  "broker-pubsub": { prints: ["2"], variable: "PUBSUB_EMULATOR_HOST", start: startPubsub },
};

async function startPubsub(): Promise<Broker> {
  const emulator = await startPubsubEmulator();
  const response = await fetch(`${emulator.url}/v1/projects/p/topics/tape`, { method: "PUT" });
  expect(response.status).toBe(200);
  return emulator;
}

function hasEmulator(): boolean {
  try {
    findPubsubEmulator();
    return true;
  } catch {
    return false;
  }
}

/** The example with the sources in place of the package. */
const toSources = ({ source }: Example): string =>
  source.replace(/"durable-tape(?:\/(\w+))?"/g, (_, name = "index") =>
    JSON.stringify(`../../../src/exports/${name}.ts`),
  );

const { named, unnamed } = examplesIn(join(root, "docs/brokers.md"));
// The command prints NOT RUN for what needs the emulator where there is none.
const runnable = named.filter(({ name }) => name !== "broker-pubsub" || hasEmulator());

describe("examples of docs/brokers.md", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(here, ".docs-"));
    for (const example of named) writeFileSync(join(folder, `${example.name}.ts`), toSources(example));
    const settings = { extends: "../tsconfig.json", compilerOptions: { noUnusedLocals: false }, include: ["*.ts"] };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("have names that are expected here", () => {
    expect(unnamed).toEqual([]);
    expect(named.map(({ name }) => name).sort()).toEqual(Object.keys(expected).sort());
  });

  it("compile in strict mode, with the types of the real clients", async () => {
    const { stdout } = await run(join(root, "node_modules/.bin/tsc"), ["--noEmit", "-p", folder]).catch(
      (error) => error,
    );
    expect(stdout).toBe("");
  });

  it.each(runnable.map(({ name }) => name))("%s runs on its server and prints what it says", async (name) => {
    const { prints, variable, start } = expected[name]!;
    const server = await start();
    try {
      const flags = ["--import", join(here, "clients.ts"), join(folder, `${name}.ts`)];
      const env = { ...process.env, [variable]: server.url.replace("http://", "") };
      const { stdout } = await run(process.execPath, flags, { env, timeout: 30_000 });
      expect(stdout.trim().split("\n")).toEqual(prints);
    } finally {
      await server.stop();
    }
  });
});
