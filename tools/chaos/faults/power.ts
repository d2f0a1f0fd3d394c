import { execFileSync } from "node:child_process";
import { chownSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import type { PostgresServer } from "../../../test/postgres/server.ts";
import type { Deployment, Fault } from "../strike.ts";

export const powerKind = "unsynced writes dropped";

/** The environment of a process of which only synced writes survive. */
export const powerEnv = (library: string, match: string, shadow: string): Record<string, string> => ({
  LD_PRELOAD: library,
  TAPE_CHAOS_MATCH: match,
  TAPE_CHAOS_SHADOW: shadow,
});

/** Puts back every file as it was when it was last synced. How many files and bytes differed from what was there. */
function dropUnsynced(shadow: string): { files: number; bytes: number } {
  let files = 0;
  let bytes = 0;
  for (const name of readdirSync(shadow)) {
    const copy = join(shadow, name);
    if (name.startsWith(".")) {
      rmSync(copy); // a copy that was never finished
      continue;
    }
    const path = name.replaceAll("%", "/");
    const synced = readFileSync(copy);
    const found = existsSync(path) ? readFileSync(path) : undefined;
    if (found?.equals(synced) === true || !existsSync(dirname(path))) continue;
    files++;
    bytes += differing(synced, found ?? Buffer.alloc(0));
    writeFileSync(path, synced);
    if (found === undefined) {
      const { uid, gid } = statSync(dirname(path));
      chownSync(path, uid, gid);
    }
  }
  return { files, bytes };
}

function differing(one: Buffer, other: Buffer): number {
  const shorter = Math.min(one.length, other.length);
  let count = Math.abs(one.length - other.length);
  for (let k = 0; k < shorter; k += 4_096) {
    const end = Math.min(k + 4_096, shorter);
    if (one.compare(other, k, end, k, end) !== 0) count += end - k;
  }
  return count;
}

const counts = "bytes were written and not synced when the power went, and they were dropped";

const words = ({ files, bytes }: { files: number; bytes: number }): string[] =>
  bytes === 0 ? ["nothing was unsynced"] : [`${files === 1 ? "a file" : "several files"} lost unsynced bytes`];

/** Every process dies at one moment, and what it had not synced is gone. */
export function sqlitePower(deployment: Deployment, file: string, shadow: string): Fault {
  const { replicas, loader, strikes } = deployment;
  return {
    kind: powerKind,
    counts,
    weight: 1,
    first: 3,
    alone: true,
    async play() {
      await betweenWriteAndSync(deployment, shadow);
      for (const replica of replicas) replica.kill();
      await Promise.all([loader.kill(), ...replicas.map((replica) => replica.gone())]);
      const dropped = dropUnsynced(shadow);
      rmSync(`${file}-shm`, { force: true }); // memory, not disk
      strikes.push({
        kind: powerKind,
        bitten: dropped.bytes > 0,
        hit: words(dropped),
        outcome: ["everybody came back"],
      });
      await Promise.all([loader.start(), ...replicas.map((replica) => replica.start())]);
      await systemClock.sleep(1_500);
    },
  };
}

/** How often everybody is stopped for a look, in the hope that somebody has written and not yet synced. */
const looks = 60;

/** Stops everybody at a moment when something is unsynced, as far as patience goes. */
async function betweenWriteAndSync({ replicas, loader, random }: Deployment, shadow: string): Promise<void> {
  for (let look = 1; ; look++) {
    for (const replica of replicas) replica.pause();
    loader.pause(true);
    await systemClock.sleep(5);
    if (look === looks || isUnsynced(shadow)) return;
    for (const replica of replicas) replica.wake();
    loader.pause(false);
    await systemClock.sleep(5 + random.int(50));
  }
}

function isUnsynced(shadow: string): boolean {
  return readdirSync(shadow)
    .filter((name) => !name.startsWith("."))
    .some((name) => {
      const path = name.replaceAll("%", "/");
      return existsSync(path) && !readFileSync(path).equals(readFileSync(join(shadow, name)));
    });
}

/** The database's machine loses its power: its server is gone, and what it had not synced. */
export function postgresPower({ strikes }: Deployment, server: PostgresServer, shadow: string): Fault {
  return {
    kind: powerKind,
    counts,
    weight: 1,
    alone: true,
    async play() {
      const { pid } = server;
      const children = execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
      for (const one of [pid, ...children.split("\n").map(Number).filter(Boolean)]) {
        try {
          process.kill(one, "SIGKILL");
        } catch {} // a connection that has just ended
      }
      await server.halt();
      await systemClock.sleep(100);
      const dropped = dropUnsynced(shadow);
      await server.resume();
      strikes.push({
        kind: powerKind,
        bitten: dropped.bytes > 0,
        hit: words(dropped),
        outcome: ["recovered from its log"],
      });
      await systemClock.sleep(1_000);
    },
  };
}
