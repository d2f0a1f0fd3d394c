import { dirname, join } from "node:path";

/** By module: the modules that import it. */
export type Importers = ReadonlyMap<string, ReadonlySet<string>>;

/** An import or a re-export with a relative path, in a module without types; so an import of types alone is none. */
const relativeImport = /\b(?:from|import)\s*\(?\s*"(\.[^"]+\.ts)"/g;

/** The paths that a module imports, by its text: most modules are read again and again without a change. */
const known = new Map<string, readonly string[]>();

function importsOf(source: string): readonly string[] {
  const found = known.get(source) ?? [...source.matchAll(relativeImport)].map(([, path]) => path!);
  known.set(source, found);
  return found;
}

/** All modules that these entries need, directly or not. */
export function importersOf(entries: readonly string[], sourceOf: (file: string) => string): Importers {
  const importers = new Map<string, Set<string>>(entries.map((file) => [file, new Set()]));
  const waiting = [...entries];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    for (const path of importsOf(sourceOf(file))) {
      const needed = join(dirname(file), path);
      if (!importers.has(needed)) {
        importers.set(needed, new Set());
        waiting.push(needed);
      }
      importers.get(needed)!.add(file);
    }
  }
  return importers;
}

/** The modules that can behave differently once these files have changed. */
export function reachedBy(changed: readonly string[], importers: Importers): ReadonlySet<string> {
  const reached = new Set<string>();
  const waiting = changed.flatMap((file) => modulesOf(file, importers));
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    waiting.push(...importers.get(file)!);
  }
  return reached;
}

/** A module itself. Statements and migrations are in a folder of their own, and modules beside that folder read them. */
function modulesOf(file: string, importers: Importers): string[] {
  const isModule = file.endsWith(".ts");
  const folder = dirname(dirname(file));
  const found = [...importers.keys()].filter((one) => (isModule ? one === file : dirname(one) === folder));
  if (found.length === 0) throw new Error(`no module of the simulation uses ${file}`);
  return found;
}
