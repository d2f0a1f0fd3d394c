import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { shellWord } from "../../engine/core/report.ts";
import { type Command, UsageError } from "../command.ts";
import { version } from "../version.ts";

/** In the package it is next to dist, in a checkout next to src. */
const template = fileURLToPath(new URL("../../../template/", import.meta.url));

const root = resolve(template, "..");

export const init: Command = {
  name: "init",
  summary: "creates a project: an agent, a crash test, tsconfig.json, tape.yaml",
  arguments: [{ name: "folder", help: "new or empty folder; its name becomes the project's name" }],
  run: async ({ arguments: { folder = "" }, screen }) => {
    const path = resolve(folder);
    const name = basename(path).toLowerCase();
    if (!/^[a-z0-9][a-z0-9._-]{0,100}$/.test(name)) {
      throw new UsageError(`${basename(path)} is not a package name: use letters, digits, dots and dashes`);
    }
    if (existsSync(path) && readdirSync(path).length > 0) {
      throw new UsageError(`${path} is not empty: name a new folder`);
    }
    mkdirSync(path, { recursive: true });
    cpSync(template, path, { recursive: true });
    renameSync(join(path, "gitignore"), join(path, ".gitignore")); // npm does not publish a .gitignore
    for (const file of ["package.json", "README.md", "tape.yaml"]) {
      const text = readFileSync(join(path, file), "utf8").replaceAll("my-agent", name);
      writeFileSync(
        join(path, file),
        text.replace('"durable-tape": "*"', `"durable-tape": ${JSON.stringify(source())}`),
      );
    }
    screen.line(`${path} is ready:`);
    screen.line(`  ${buildFirst(root)}cd ${shellWord(folder)} && npm install`);
    screen.line("  npm test");
    screen.line("  npm start");
    screen.line("While that runs, in another terminal in the same folder:");
    screen.line(`  npx durable-tape start pay --input '{"invoice":"7","amount":250}' --id pay-7`);
    screen.line("The bank takes ten seconds. The first terminal shows the command that kills the agent. Then:");
    screen.line("  npx durable-tape inspect pay-7");
    return 0;
  },
};

/** A checkout must be built before another project can import it. */
export function buildFirst(folder: string): string {
  if (existsSync(join(folder, "dist", "exports-index.js"))) return "";
  return `npm run build --prefix ${shellWord(folder)} && `;
}

/**
 * The project's dependency on this package: a version if this copy came from a registry. A checkout or a local archive
 * is named by its path, because the registry may not have this version.
 */
function source(): string {
  const modules = dirname(root);
  if (basename(modules) !== "node_modules") return `file:${root}`;
  try {
    const lock = JSON.parse(readFileSync(join(modules, ".package-lock.json"), "utf8")) as Lock;
    const { resolved = "" } = lock.packages?.["node_modules/durable-tape"] ?? {};
    // Relative to the folder of the project, or to node_modules: that depends on the version of npm.
    const archives = [dirname(modules), modules].map((base) => resolve(base, resolved.slice("file:".length)));
    if (resolved.startsWith("file:")) return `file:${archives.find((path) => existsSync(path)) ?? archives[0]}`;
  } catch {
    // No npm lock file: another package manager installed it from a registry.
  }
  return `^${version}`;
}

interface Lock {
  readonly packages?: Readonly<Record<string, { readonly resolved?: string }>>;
}
