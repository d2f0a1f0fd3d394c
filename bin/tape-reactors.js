#!/usr/bin/env node
// Plain JavaScript without static imports: an old Node must get as far as the sentence below.
if (Number.parseInt(process.versions.node, 10) < 24) {
  console.error(`Tape needs Node 24 or newer; this is v${process.versions.node}.`);
  process.exit(2);
}

const { existsSync } = await import("node:fs");
// A checkout has no dist: there Node runs the sources.
const built = new URL("../dist/cli/reactors/main.js", import.meta.url);
const source = new URL("../src/cli/reactors/main.ts", import.meta.url);
const { main } = await import((existsSync(built) ? built : source).href);
// What did not come to rest within its bound must not keep the process: everything was closed.
process.exit(await main(process.argv.slice(2)));
