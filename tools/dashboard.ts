// Builds the dashboard into dashboard/dist. With --if-stale only when a source is newer than what was built.
import { existsSync, globSync, renameSync, rmSync, statSync } from "node:fs";
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
  // Beside the old one, then in its place: whoever serves it meanwhile, or builds too, never sees half of one.
  const [dist, aside] = [join(folder, "dist"), join(folder, `.build-${process.pid}`)];
  const outDir = join(aside, "dist");
  await build({ configFile: join(folder, "vite.config.ts"), logLevel: "error", build: { outDir } });
  try {
    if (existsSync(dist)) renameSync(dist, join(aside, "old"));
    renameSync(outDir, dist);
  } catch (error) {
    // Another builder of the same sources was quicker.
    if (!existsSync(join(dist, "index.html"))) throw error;
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
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
