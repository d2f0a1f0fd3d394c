import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { examplesIn } from "../../../test/docs/examples.ts";

const { expect, it, onTestFinished } = globalThis as unknown as typeof import("vitest");
const run = promisify(execFile);
const root = join(import.meta.dirname, "../../..");

/** Lines of a sample, without its name. */
const maxLines = 20;

/**
 * The sample of a page compiles with the framework's real types, and prints what it says. The folder `support` has the
 * files that it imports beside it.
 */
export function docsSample(folder: string, page: string, prints: readonly string[]): void {
  it(`the sample of docs/${page}.md runs`, { timeout: 120_000 }, async () => {
    const { named, unnamed } = examplesIn(join(root, "docs", `${page}.md`));
    expect([named.map(({ name }) => name), unnamed]).toEqual([[page], []]);
    const { source } = named[0]!;
    expect(source.trim().split("\n").length - 1).toBeLessThanOrEqual(maxLines);
    const place = mkdtempSync(join(folder, ".docs-"));
    onTestFinished(() => rmSync(place, { recursive: true }));
    cpSync(join(folder, "support"), place, { recursive: true });
    writeFileSync(join(place, "sample.ts"), source);
    const settings = { extends: "../tsconfig.json", include: ["*.ts"] };
    writeFileSync(join(place, "tsconfig.json"), JSON.stringify(settings));
    const compiled = run(join(root, "node_modules/.bin/tsc"), ["--noEmit", "-p", place]);
    expect((await compiled.catch((error: { stdout: string }) => error)).stdout).toBe("");
    const { stdout } = await run(process.execPath, [join(place, "sample.ts")], { timeout: 60_000 });
    expect(stdout.trim().split("\n")).toEqual(prints);
  });
}
