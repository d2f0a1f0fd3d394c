import { join, sep } from "node:path";
import { rolldown } from "rolldown";
import { inlined } from "./inlined.ts";
import { bundledName, places } from "./places.ts";

/** What is loaded from outside: the doors of the package, and what bin/ starts. */
const entries = ["exports/index.ts", "exports/testing.ts", "cli/main.ts", "cli/reactors/main.ts"];

/** A few files in place of hundreds: npm unpacks and Node loads them several times faster. Returns their number. */
export async function bundle(root: string, dist: string): Promise<number> {
  const src = join(root, "src");
  const build = await rolldown({
    input: Object.fromEntries(entries.map((path) => [bundledName(path).slice(0, -".js".length), join(src, path)])),
    platform: "node",
    external: (id) => !id.startsWith(".") && !id.startsWith(src) && !inlined.some((name) => isOf(id, name)),
    plugins: [places(src)],
    transform: { target: "node24" },
    onLog(level, log) {
      if (level !== "debug" && level !== "info") throw new Error(log.message);
    },
  });
  const { output } = await build.write({
    dir: dist,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name].js",
    // Errors and stack traces name classes and functions as the sources do.
    keepNames: true,
    minify: false,
  });
  await build.close();
  return output.length;
}

const isOf = (id: string, name: string): boolean =>
  id === name || id.startsWith(`${name}/`) || id.includes(`${sep}node_modules${sep}${name}${sep}`);
