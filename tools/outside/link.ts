// Loaded into each Node process of a suite. Users have the frameworks beside the package; here the package's sources find
// them in the folder of the suite, and the suite finds the sources under the name of the package.
import { existsSync, readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = process.env.TAPE_OUTSIDE;
if (folder === undefined) throw new Error("TAPE_OUTSIDE names the folder of the suite");
const root = pathToFileURL(join(import.meta.dirname, "..", "..", "/")).href;
const manifest = join(folder, "package.json");
const parentURL = pathToFileURL(manifest).href;
// A suite without a tree of its own has its framework in the project's.
const text = existsSync(manifest) ? readFileSync(manifest, "utf8") : "{}";
const { dependencies = {} } = JSON.parse(text) as { dependencies?: object };
const ours = new RegExp(`^(${Object.keys(dependencies).join("|") || "$."})(/|$)`);

registerHooks({
  resolve(specifier, context, next) {
    const own = /^durable-tape(?:\/([\w-]+))?$/.exec(specifier);
    if (own !== null) {
      const file = own[1] === "testing" ? "testkit/index.ts" : `src/exports/${own[1] ?? "index"}.ts`;
      return next(new URL(file, root).href, context);
    }
    const fromSources = context.parentURL?.startsWith(`${root}src/`) === true;
    return fromSources && ours.test(specifier) ? next(specifier, { ...context, parentURL }) : next(specifier, context);
  },
});
