// `npm run docs` builds the site into tools/site/dist. `--check` then checks links, search and accessibility in a browser;
// `--serve` serves the files.
import { execFileSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { installOnce } from "./install.ts";
import { serveFiles } from "./serve-files.ts";
import { stagePages } from "./stage.ts";

const folder = import.meta.dirname;
const dist = join(folder, "dist");
const { values } = parseArgs({ options: { check: { type: "boolean" }, serve: { type: "boolean" } } });

const started = performance.now();
installOnce(folder);
const pages = stagePages();
execFileSync(process.execPath, [join(folder, "node_modules/vitepress/bin/vitepress.js"), "build", folder], {
  stdio: ["ignore", "ignore", "inherit"],
});
const bytes = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
const seconds = ((performance.now() - started) / 1_000).toFixed(1);
console.log(`built tools/site/dist: ${pages} pages, ${(bytes / 1e6).toFixed(1)} MB, in ${seconds} s`);

if (values.check) {
  const { checkSite } = await import("./check.ts");
  const { passed, failed } = await checkSite(dist);
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
}
if (values.serve) {
  const server = await serveFiles(dist, 4173);
  console.log(`serves ${server.url}; end it with Ctrl-C`);
}
