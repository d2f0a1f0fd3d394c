import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { shellWord } from "../../engine/core/report.ts";
import { type Command, UsageError } from "../command.ts";
import { version } from "../version.ts";

/** Beside dist in the package, beside src in a checkout. */
const template = fileURLToPath(new URL("../../../template/", import.meta.url));

const root = resolve(template, "..");

export const init: Command = {
  name: "init",
  summary: "makes a project that runs at once: an agent, a test that crashes it everywhere, tape.yaml",
  arguments: [{ name: "folder", help: "a new or empty folder; its name is the project's" }],
  run: async ({ arguments: { folder = "" }, screen }) => {
    const path = resolve(folder);
    const name = basename(path).toLowerCase();
    if (!/^[a-z0-9][a-z0-9._-]{0,100}$/.test(name)) {
      throw new UsageError(`${basename(path)} is no name for a package: letters, digits, dots and dashes, please`);
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
    screen.line(`  ${buildFirst(root)}cd ${shellWord(folder)} && npm install && npm start`);
    return 0;
  },
};

/** A checkout has sources and nothing that another project could import, until it is built. */
export function buildFirst(folder: string): string {
  if (existsSync(join(folder, "dist", "exports-index.js"))) return "";
  return `npm run build --prefix ${shellWord(folder)} && `;
}

/**
 * Where the project gets this very package from: the registry, if this copy came from one. A checkout, an unpacked or a
 * local archive is named by its path, because the registry may not have this version.
 */
function source(): string {
  const modules = dirname(root);
  if (basename(modules) !== "node_modules") return `file:${root}`;
  try {
    const lock = JSON.parse(readFileSync(join(modules, ".package-lock.json"), "utf8")) as Lock;
    const { resolved = "" } = lock.packages?.["node_modules/durable-tape"] ?? {};
    if (resolved.startsWith("file:")) return `file:${resolve(modules, resolved.slice("file:".length))}`;
  } catch {
    // No lock beside it: another package manager's, with a registry behind it.
  }
  return `^${version}`;
}

interface Lock {
  readonly packages?: Readonly<Record<string, { readonly resolved?: string }>>;
}
