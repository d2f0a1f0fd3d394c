// `npm run test:nodes` runs the packed package on real versions of Node from npm. On the oldest supported one it follows
// what `init` prints, and runs the conformance suite of the package; older ones must get the sentence about the version.
// The last line is `N passed, N failed`.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { entryPointsOf, loadOn, manifestOf } from "../package/old-node.ts";
import { packTarball } from "../package/tarball.ts";
import { oldestOf, takeNode } from "./nodes.ts";

/** Lines that have ended, and whose users still try. */
const oldVersions = ["18.20.8", "20.20.2"];

let passed = 0;
let failed = 0;
function check(what: string, ok: boolean, output: string): void {
  if (ok) passed++;
  else failed++;
  console.log(` ${ok ? "✓" : "×"} ${what}${ok ? "" : `\n${output}`}`);
}

const scratch = mkdtempSync(join(tmpdir(), "tape-nodes-"));
const tarball = packTarball();

/** Types a command into a shell with this Node, and with nothing of the repository's. */
function type(node: string, cwd: string, command: string): { readonly ok: boolean; readonly output: string } {
  const path = (process.env.PATH ?? "").split(":").filter((folder) => !folder.includes("node_modules"));
  const env = {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_|PATH$|HOME$)/i.test(name))),
    ...(process.env.NODE_EXTRA_CA_CERTS && { NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS }),
    ...(process.env.npm_config_registry && { npm_config_registry: process.env.npm_config_registry }),
    PATH: [dirname(node), ...path].join(":"),
    HOME: scratch,
  };
  const { status, stdout, stderr } = spawnSync("sh", ["-c", command], {
    cwd,
    env,
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  return { ok: status === 0, output: `${stdout}${stderr}`.slice(-8_000) };
}

function followInit(version: string): void {
  const node = takeNode(version, scratch);
  const first = join(scratch, "first");
  mkdirSync(first);
  const init = `npx -y --package ${tarball.file} durable-tape init my-agent`;
  const made = type(node, first, init);
  check(`Node ${version}: ${init.replace(tarball.file, "TARBALL")}`, made.ok, made.output);
  const [install = "", ...commands] = [...made.output.matchAll(/^ {2}(\S.*)$/gm)].map(([, command]) => command!);
  const tests = commands.filter((command) => command === "npm test");
  for (const command of [install, ...tests.map((test) => `cd my-agent && ${test}`), "cd my-agent && npm run check"]) {
    const { ok, output } = type(node, first, command);
    check(`Node ${version}: ${command}`, ok && command !== "" && !/ExperimentalWarning: SQLite/.test(output), output);
  }
  const project = join(first, "my-agent");
  copyFileSync(new URL("./conformance.mjs", import.meta.url), join(project, "conformance.test.mjs"));
  const { ok, output } = type(node, project, "node --test --test-reporter=tap conformance.test.mjs");
  const cases = Number(/^# pass (\d+)$/m.exec(output)?.[1] ?? 0);
  check(`Node ${version}: ${cases} cases of the conformance suite`, ok && cases > 300, output);
}

function readSentence(version: string): void {
  const node = takeNode(version, scratch);
  const project = join(scratch, `old-${version}`);
  mkdirSync(project);
  tarball.install(project);
  for (const way of ["import", "require"] as const) {
    const names = entryPointsOf(tarball.unpacked, way === "require");
    const text = loadOn(version, way, names);
    const { output } = type(node, project, `node --input-type=module --eval '${text}'`);
    const lines = output.trim().split("\n");
    const sentence = `durable-tape needs Node 24.14.1 or newer, or 22.22.2 or newer of the line 22; this is v${version}. Install it`;
    const ok = lines.length === names.length && lines.every((line) => line.includes(sentence));
    check(`Node ${version}: ${way} by ${names.length} names fails with one sentence`, ok, output);
  }
}

try {
  followInit(oldestOf(manifestOf(tarball.unpacked).engines!.node));
  for (const version of oldVersions) readSentence(version);
} finally {
  tarball.remove();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
}
const code = failed > 0 || passed === 0 ? 1 : 0;
process.stdout.write(`${passed} passed, ${failed} failed\n`, () => process.exit(code));
