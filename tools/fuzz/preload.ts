// Loaded into the server under test before its own code. Reports its memory after a garbage collection, and plants
// weaknesses into its sources as they are loaded.
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { type Patch, patched } from "../../test/planted/bug.ts";
import { type Memory, patchesVariable } from "./memory.ts";

declare const gc: (() => void) | undefined;

if (process.send !== undefined) {
  process.on("message", (message) => {
    if (message !== "memory") return;
    gc?.();
    gc?.(); // frees what finalizers released
    const { heapUsed: heap, external, arrayBuffers, rss } = process.memoryUsage();
    process.send?.({ heap, outside: external + arrayBuffers, rss } satisfies Memory);
  });
  process.channel?.unref();
}

const patches = JSON.parse(process.env[patchesVariable] ?? "[]") as Patch[];
const sources = new URL("../../src/", import.meta.url).href;

if (patches.length > 0) {
  registerHooks({
    load(url, context, next) {
      const found = patches.filter(({ file }) => url === `${sources}${file}`);
      if (found.length === 0) return next(url, context);
      let text = readFileSync(fileURLToPath(url), "utf8");
      for (const patch of found) text = patched(text, patch);
      return { format: "module-typescript", source: text, shortCircuit: true };
    },
  });
}
