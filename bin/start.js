// Plain JavaScript for old versions of Node, which must get as far as the message below.
import node from "./node-version.cjs";

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

function refuseOldNode() {
  if (node.isFit(process.versions.node)) return;
  const quote = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`);
  // The path of the started file works for a checkout, an install and npx alike.
  const [script, ...rest] = process.argv.slice(1);
  const here = `${process.cwd()}/`;
  const path = script.startsWith(here) ? script.slice(here.length) : script;
  const command = [...node.npxOfNode(), path, ...rest].map(quote).join(" ");
  console.error(`Tape needs ${node.needed}; this is v${process.versions.node}. Run it with: ${command}`);
  process.exit(2);
}
