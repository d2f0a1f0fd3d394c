import { existsSync, mkdirSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Browser, chromium } from "playwright-core";

const installed = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

const args = ["--no-sandbox", "--disable-gpu", "--font-render-hinting=none"];

/**
 * The machine's Chromium, or the one from npm. That one is unpacked once, into a folder of its own: it reuses any binary
 * that it finds there.
 */
export async function openBrowser(): Promise<Browser> {
  const found = installed.find((path) => existsSync(path));
  if (found !== undefined) return chromium.launch({ executablePath: found, args });
  const folder = join(tmpdir(), "tape-chromium");
  mkdirSync(folder, { recursive: true });
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  try {
    const executablePath = await unpacked(folder);
    // Not the package's own arguments: they disable protections and put everything into one process.
    return await chromium.launch({ executablePath, args });
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}

/** One worker at a time: another would execute a file that is still being written. */
async function unpacked(folder: string): Promise<string> {
  const lock = `${folder}.lock`;
  for (let tries = 0; ; tries++) {
    try {
      mkdirSync(lock);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || tries > 600) throw error;
      await sleep(100);
    }
  }
  try {
    const { default: packed } = await import("@sparticuz/chromium");
    return await packed.executablePath();
  } finally {
    rmdirSync(lock);
  }
}
