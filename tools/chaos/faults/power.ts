import { execFileSync } from "node:child_process";
import { chownSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import type { PostgresServer } from "../../../test/postgres/server.ts";
import type { Deployment, Fault } from "../fault.ts";

export const powerKind = "unsynced writes dropped";

/** Environment of a process of which only synced writes survive. */
export const powerEnv = (library: string, match: string, shadow: string): Record<string, string> => ({
  LD_PRELOAD: library,
  TAPE_CHAOS_MATCH: match,
  TAPE_CHAOS_SHADOW: shadow,
});

/** Restores every file as of its last sync. Returns how many files and bytes differed. */
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

function differing(first: Buffer, second: Buffer): number {
  const shorter = Math.min(first.length, second.length);
  let count = Math.abs(first.length - second.length);
  for (let k = 0; k < shorter; k += 4_096) {
    const end = Math.min(k + 4_096, shorter);
    if (first.compare(second, k, end, k, end) !== 0) count += end - k;
  }
  return count;
}

const effectiveWhen = "bytes that were written and not synced were dropped at the power cut";

const describe = ({ files, bytes }: { files: number; bytes: number }): string[] =>
  bytes === 0 ? ["nothing was unsynced"] : [`${files === 1 ? "a file" : "several files"} lost unsynced bytes`];

/** Every process dies at the same moment, and its unsynced writes are lost. */
export function sqlitePower(deployment: Deployment, file: string, shadow: string): Fault {
  const { replicas, loader, injections } = deployment;
  return {
    kind: powerKind,
    effectiveWhen,
    weight: 1,
    initial: 3,
    exclusive: true,
    async inject() {
      await betweenWriteAndSync(deployment, shadow);
      for (const replica of replicas) replica.kill();
      await Promise.all([loader.kill(), ...replicas.map((replica) => replica.gone())]);
      const dropped = dropUnsynced(shadow);
      rmSync(`${file}-shm`, { force: true }); // memory, not disk
      injections.push({
        kind: powerKind,
        effective: dropped.bytes > 0,
        hit: describe(dropped),
        outcome: ["every process restarted"],
      });
      await Promise.all([loader.start(), ...replicas.map((replica) => replica.start())]);
      await systemClock.sleep(1_500);
    },
  };
}

/** How often all processes are stopped to check whether one has written and not yet synced. */
const maxChecks = 60;

/** Stops all processes at a moment with unsynced writes, or at the last check. */
async function betweenWriteAndSync({ replicas, loader, random }: Deployment, shadow: string): Promise<void> {
  for (let check = 1; ; check++) {
    for (const replica of replicas) replica.pause();
    loader.pause(true);
    await systemClock.sleep(5);
    if (check === maxChecks || isUnsynced(shadow)) return;
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

/** The database's machine loses power: its server ends, and unsynced writes are lost. */
export function postgresPower({ injections }: Deployment, server: PostgresServer, shadow: string): Fault {
  return {
    kind: powerKind,
    effectiveWhen,
    weight: 1,
    exclusive: true,
    async inject() {
      const { pid } = server;
      const children = execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
      for (const victim of [pid, ...children.split("\n").map(Number).filter(Boolean)]) {
        try {
          process.kill(victim, "SIGKILL");
        } catch {} // the connection has just ended
      }
      await server.halt();
      await systemClock.sleep(100);
      const dropped = dropUnsynced(shadow);
      await server.resume();
      injections.push({
        kind: powerKind,
        effective: dropped.bytes > 0,
        hit: describe(dropped),
        outcome: ["recovered from its WAL"],
      });
      await systemClock.sleep(1_000);
    },
  };
}
