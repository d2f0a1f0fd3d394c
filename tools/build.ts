// Builds what is published: Node refuses TypeScript under node_modules, so dist holds JavaScript, declarations and SQL,
// and the dashboard as files that a browser loads.
import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, globSync, mkdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildIfStale } from "./dashboard.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");

rmSync(dist, { recursive: true, force: true });

const typescript = dirname(createRequire(import.meta.url).resolve("typescript/package.json"));
const flags = ["--project", join(root, "tsconfig.build.json")];
const { status } = spawnSync(process.execPath, [join(typescript, "bin", "tsc"), ...flags], {
  cwd: root,
  stdio: "inherit",
});
if (status !== 0) {
  // A half-built dist would be found by bin/durable-tape.js and hide the sources.
  rmSync(dist, { recursive: true, force: true });
  process.exit(1);
}

const statements = globSync("**/*.sql", { cwd: join(root, "src") });
for (const path of [...statements, "config/tape.schema.json"]) {
  mkdirSync(dirname(join(dist, path)), { recursive: true });
  copyFileSync(join(root, "src", path), join(dist, path));
}
await buildIfStale();
cpSync(join(root, "dashboard", "dist"), join(dist, "dashboard"), { recursive: true });
console.log(`built dist with the dashboard and ${statements.length} SQL files`);
