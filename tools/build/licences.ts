import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Licences of all npm packages in the published files: those inlined in the bundle, those imported by the dashboard, and
 * their dependencies.
 */
export function licences(root: string, inlined: readonly string[]): string {
  const found = new Map<string, string>();
  for (const name of [...inlined, ...dashboardPackages(root)]) collect(name, root, found);
  const intro = "Parts of these packages are included in the files of durable-tape, under their own licences.";
  return `${[intro, ...[...found].sort().map(([, text]) => text)].join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
}

function dashboardPackages(root: string): readonly string[] {
  const sources = globSync("dashboard/src/**/*.{ts,tsx}", { cwd: root });
  const specifiers = sources.flatMap((path) =>
    [...readFileSync(join(root, path), "utf8").matchAll(/^(?:import|\} from|export .* from) .*"([^."][^"]*)";$/gm)].map(
      ([, specifier]) => specifier!,
    ),
  );
  return [...new Set(specifiers.map((specifier) => /^(@[^/]+\/)?[^/]+/.exec(specifier)![0]))];
}

function collect(name: string, from: string, found: Map<string, string>): void {
  if (found.has(name)) return;
  const folder = folderOf(name, from);
  const { version, license, dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    version: string;
    license: string;
    dependencies?: Record<string, string>;
  };
  const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.\w+)?$/i.test(entry));
  if (file === undefined) throw new Error(`${name} has no licence file`);
  found.set(name, `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}`);
  for (const dependency of Object.keys(dependencies ?? {})) collect(dependency, folder, found);
}

/** The folder of a package, as Node resolves it. */
function folderOf(name: string, from: string): string {
  const folder = join(from, "node_modules", name);
  if (existsSync(join(folder, "package.json"))) return folder;
  if (from === dirname(from)) throw new Error(`${name} is not installed`);
  return folderOf(name, dirname(from));
}
