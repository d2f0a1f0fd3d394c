import { join, sep } from "node:path";
import { rolldown } from "rolldown";
import { adapters } from "./adapters.ts";
import { inlined } from "./inlined.ts";
import { bundledName, places } from "./places.ts";

/** Modules that are loaded from outside: the entry points of the package, and the programs of bin/. */
const entries = [
  ...["index", "ai", "kafka", "mcp", "nats", "push", "redis", ...adapters].map((name) => `src/exports/${name}.ts`),
  ...["testkit/index.ts", "src/cli/main.ts", "src/cli/reactors/main.ts"],
];

/**
 * Each file has these modules with all their imports, except those of an earlier file. An embedded program on SQLite or in
 * memory loads only the first; the others are loaded on demand.
 */
const groups = [
  ["embedded", "src/exports/index.ts"],
  ["postgres", "src/store/postgres/"],
  ["wire", "src/client/store.ts"],
  ["server", "src/server/"],
  ["programs", "src/cli/reactors/main.ts"],
  ["demos", "src/cli/demo/treasury/"],
  ["spanner", "src/store/spanner/"],
] as const;

/** Functions that replace newer syntax. rolldown has them itself. */
const helpers = "@oxc-project/runtime";

/** The first import, so that an old Node gets a sentence about its version instead of the first thing that it lacks. */
const needsNode = 'import "../bin/needs-node.js";';
const isLibrary = (name: string): boolean => /^(exports|testkit)-/.test(name);

/** Writes a few files instead of hundreds: npm unpacks and Node loads them several times faster. Returns their number. */
export async function bundle(root: string, dist: string): Promise<number> {
  const src = join(root, "src");
  const isOurs = (id: string): boolean =>
    [src, join(root, "testkit")].some((folder) => id.startsWith(`${folder}${sep}`));
  const build = await rolldown({
    input: Object.fromEntries(entries.map((path) => [bundledName(path).slice(0, -".js".length), join(root, path)])),
    platform: "node",
    external: (id) => !id.startsWith(".") && !isOurs(id) && ![...inlined, helpers].some((name) => isOf(id, name)),
    plugins: [places(src)],
    // The oldest supported line, which lacks `await using`.
    transform: { target: "node22" },
    onLog(level, log) {
      if (level !== "debug" && level !== "info") throw new Error(log.message);
    },
  });
  const { output } = await build.write({
    dir: dist,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name].js",
    banner: ({ isEntry, name }) => (isEntry && isLibrary(name) ? needsNode : ""),
    // Errors and stack traces keep the names of classes and functions.
    keepNames: true,
    minify: false,
    codeSplitting: {
      groups: groups.map(([name, module], k) => ({
        name,
        test: (id) => id.startsWith(join(root, module)),
        priority: groups.length - k,
      })),
    },
  });
  await build.close();
  return output.length;
}

const isOf = (id: string, name: string): boolean =>
  id === name || id.startsWith(`${name}/`) || id.includes(`${sep}node_modules${sep}${name}${sep}`);
