// `npm run test:first-hour` follows every guide of docs/guides literally: in an empty folder, with the packed tarball, a
// real PostgreSQL and real processes, on the oldest supported Node and on the repository's. The last line is
// `N passed, N failed`. Arguments choose guides (`npm run test:first-hour -- payments testing`); `--node 24.14.1` one Node.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packTarball } from "../package/tarball.ts";
import { startPostgres } from "../postgres/server.ts";
import { follow } from "./follow.ts";
import { guideNames, readGuide } from "./guide.ts";
import { supportedNodes } from "./nodes.ts";
import { startRegistry } from "./registry.ts";

const args = process.argv.slice(2);
const nodeFlag = args.indexOf("--node");
const [onlyNode] = nodeFlag < 0 ? [] : args.splice(nodeFlag, 2).slice(1);
const names = args.length > 0 ? args : guideNames();
const limitMs = 3_600_000; // an hour: the promise of the name

let passed = 0;
let failed = 0;
const scratch = mkdtempSync(join(tmpdir(), "tape-first-hour-"));
const tarball = packTarball();
const registry = await startRegistry(tarball.file, join(tarball.unpacked, "package.json"));
try {
  for (const node of supportedNodes(scratch)) {
    if (onlyNode !== undefined && node.version !== onlyNode) continue;
    const home = join(scratch, `home-${node.version}`);
    mkdirSync(home);
    const server = await startPostgres({ major: 18, settings: {} }); // of its own: a guide creates a role, which outlives its database
    const started = performance.now();
    for (const name of names) {
      const from = performance.now();
      const seconds = (): string => ((performance.now() - from) / 1_000).toFixed(1);
      try {
        await follow(readGuide(name), { node, registry: registry.url, postgres: server.url, scratch: home });
        passed++;
        console.log(` ✓ ${name} on Node ${node.version} (${seconds()} s)`);
      } catch (error) {
        failed++;
        console.error(` × ${name} on Node ${node.version} (${seconds()} s)\n${(error as Error).message}`);
      }
    }
    await server.stop();
    const tookMs = performance.now() - started;
    console.log(` ${names.length} guides on Node ${node.version} took ${(tookMs / 60_000).toFixed(1)} minutes`);
    if (tookMs > limitMs) {
      failed++;
      console.error(" × they take longer than an hour");
    }
  }
} finally {
  registry.close();
  tarball.remove();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
}
const code = failed > 0 || passed === 0 ? 1 : 0;
process.stdout.write(`${passed} passed, ${failed} failed\n`, () => process.exit(code));
