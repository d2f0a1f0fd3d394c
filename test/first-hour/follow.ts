import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { program } from "../totals.ts";
import type { CommandStep, Guide } from "./guide.ts";
import { shows, showsAmong } from "./match.ts";
import type { NodeVersion } from "./nodes.ts";
import { Terminal } from "./terminal.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");

export interface Surroundings {
  readonly node: NodeVersion;
  /** Address of the npm registry. */
  readonly registry: string;
  /** Address of a PostgreSQL server. */
  readonly postgres: string;
  /** A folder for this hour: the cache of npm, and a folder for each guide. */
  readonly scratch: string;
}

/** Does what the page says in an empty folder, block by block. Throws where the page is wrong. */
export async function follow(guide: Guide, around: Surroundings): Promise<void> {
  for (const port of guide.ports) await isFree(port);
  const folder = mkdtempSync(join(around.scratch, `${guide.name}-`));
  const database = guide.usesPostgres ? await freshDatabase(around.postgres) : undefined;
  const terminals = new Map<string, Terminal>();
  const terminal = (name: string): Terminal => {
    const open = terminals.get(name) ?? new Terminal(folder, environment(around, database));
    terminals.set(name, open);
    return open;
  };
  try {
    for (const step of guide.steps) {
      try {
        if (step.kind === "command") await perform(step, terminal(step.terminal));
        else write(join(folder, step.path), step.text);
      } catch (error) {
        const others = [...terminals].map(([name, { output }]) => `--- terminal ${name}\n${output.slice(-3_000)}`);
        throw new Error(`${guide.name}.md:${step.line}: ${(error as Error).message}\n${others.join("\n")}`);
      }
    }
    await compile(guide, folder);
  } finally {
    for (const open of terminals.values()) open.close();
    if (database !== undefined) await dropDatabase(database);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function perform({ terminal: name, commands, shows: page }: CommandStep, terminal: Terminal): Promise<void> {
  if (name !== "main") {
    await terminal.type(commands, (output) => page === undefined || showsAmong(output, page));
    return;
  }
  const output = await terminal.run(commands);
  if (page !== undefined && !shows(output, page))
    throw new Error(`the page says:\n${page}\nthe terminal shows:\n${output}`);
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** The files as the guide leaves them also compile in strict mode, against the published types. */
async function compile({ name, steps }: Guide, folder: string): Promise<void> {
  const files = steps.flatMap((step) => (step.kind === "file" && step.path.endsWith(".ts") ? [step.path] : []));
  const flags = "--noEmit --strict --skipLibCheck --module nodenext --target es2024 --allowImportingTsExtensions";
  const types = ["--types", "node", "--typeRoots", join(root, "node_modules/@types")];
  const args = [program("typescript", "tsc"), ...flags.split(" "), ...types, ...new Set(files)];
  const { stdout } = await run(process.execPath, args, { cwd: folder }).catch((error: { stdout: string }) => error);
  if (stdout !== "") throw new Error(`${name}.md: its files do not compile:\n${stdout}`);
}

/** A reader's environment: nothing of the repository's, so that no guide depends on it. */
function environment({ node, registry, scratch }: Surroundings, database: string | undefined): Record<string, string> {
  const { PATH = "", LANG = "C.UTF-8" } = process.env;
  // `npm run` puts the repository's own commands on the PATH. A reader has none of them.
  const path = PATH.split(":").filter((folder) => !folder.includes("node_modules"));
  const network = Object.entries(process.env).filter(([name]) =>
    /^(https?|no)_proxy$|_CERTS?(_|$)|^SSL_CERT/i.test(name),
  );
  return {
    ...(Object.fromEntries(network) as Record<string, string>), // how this machine reaches the registry
    PATH: [node.bin, ...path].join(":"),
    LANG,
    HOME: scratch,
    TMPDIR: scratch,
    NO_COLOR: "1",
    npm_config_registry: registry,
    npm_config_cache: join(scratch, "npm"),
    npm_config_audit: "false",
    npm_config_fund: "false",
    npm_config_update_notifier: "false",
    ...(database === undefined ? {} : { DATABASE_URL: database }),
  };
}

/** The programs of a guide listen where it says. The port may still be closing after the guide before. */
async function isFree(port: number): Promise<void> {
  for (let tries = 0; !(await canListen(port)); tries++) {
    if (tries === 30) throw new Error(`port ${port} of this machine is in use, and the guide needs it`);
    await delay(1_000);
  }
}

const canListen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
