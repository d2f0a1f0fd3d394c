// Builds the dashboard into dashboard/dist. With --if-stale only when a source is newer than what was built.
import { globSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(root, "dashboard");

/** Also what the page takes from the contract: types alone, but a changed path is a changed page. */
function isStale(): boolean {
  const changedAt = (path: string): number => statSync(join(folder, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const built = changedAt("dist/index.html");
  const sources = ["index.html", "vite.config.ts", ...globSync("{src,public}/**/*.{ts,tsx,css,svg}", { cwd: folder })];
  return sources.some((path) => changedAt(path) > built);
}

export async function buildDashboard(): Promise<void> {
  process.env.NODE_ENV = "production"; // also where a test runner has set it to something else
  const { build } = await import("vite");
  await build({ configFile: join(folder, "vite.config.ts"), logLevel: "error" });
}

export async function buildIfStale(tell: (line: string) => void = () => {}): Promise<void> {
  if (!isStale()) return;
  tell("building the dashboard, a few seconds, once");
  await buildDashboard();
}

if (import.meta.main) {
  if (process.argv.includes("--if-stale")) await buildIfStale((line) => console.log(line));
  else {
    await buildDashboard();
    console.log("built dashboard/dist");
  }
}
