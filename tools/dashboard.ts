// Builds the dashboard into dashboard/dist. With --if-stale only when a source is newer than the build.
import { existsSync, globSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(root, "dashboard");

function isStale(): boolean {
  const changedAt = (path: string): number => statSync(join(folder, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const built = changedAt("dist/index.html");
  const sources = ["index.html", "vite.config.ts", ...globSync("{src,public}/**/*.{ts,tsx,css,svg}", { cwd: folder })];
  return sources.some((path) => changedAt(path) > built);
}

export async function buildDashboard(): Promise<void> {
  process.env.NODE_ENV = "production"; // even if a test runner has set another value
  const { build } = await import("vite");
  // Built beside the old one and then renamed, so that a server or another build never sees a partial one.
  const [dist, aside] = [join(folder, "dist"), join(folder, `.build-${process.pid}`)];
  const outDir = join(aside, "dist");
  await build({ configFile: join(folder, "vite.config.ts"), logLevel: "error", build: { outDir } });
  try {
    if (existsSync(dist)) renameSync(dist, join(aside, "old"));
    renameSync(outDir, dist);
  } catch (error) {
    // Another build of the same sources was faster.
    if (!existsSync(join(dist, "index.html"))) throw error;
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}

export async function buildIfStale(log: (line: string) => void = () => {}): Promise<void> {
  if (!isStale()) return;
  log("building the dashboard once, which takes a few seconds");
  await buildDashboard();
}

if (import.meta.main) {
  if (process.argv.includes("--if-stale")) await buildIfStale((line) => console.log(line));
  else {
    await buildDashboard();
    console.log("built dashboard/dist");
  }
}
