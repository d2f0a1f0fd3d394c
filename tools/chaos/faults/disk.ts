import { execFileSync } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { anyOf, type Deployment, type Fault, targets } from "../strike.ts";

export const fullKind = "disk full";
export const errorKind = "I/O error";

/** What complains when a disk fails: log files that grow while it lasts. */
export interface Complaints {
  readonly files: () => readonly string[];
  readonly pattern: RegExp;
}

/** Counts the lines that were added to logs since it was made and that match. */
function complaintsSince({ files, pattern }: Complaints): () => number {
  const from = new Map(files().map((file) => [file, sizeOf(file)]));
  return () =>
    files()
      .filter((file) => existsSync(file))
      .flatMap((file) =>
        readFileSync(file)
          .subarray(from.get(file) ?? 0)
          .toString()
          .split("\n"),
      )
      .filter((line) => pattern.test(line)).length;
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

/** Takes every free byte of the store's disk, and gives it back. */
export function fullFault(
  { random, strikes }: Deployment,
  disk: string,
  complaints: Complaints,
  after: () => Promise<void> = async () => {},
): Fault {
  return {
    kind: fullKind,
    counts: "writes of ours failed because no space was left",
    weight: 1,
    alone: true,
    async play() {
      const count = complaintsSince(complaints);
      const filler = join(disk, "filler");
      fill(filler);
      await systemClock.sleep(1_000 + random.int(1_500));
      rmSync(filler, { force: true });
      await after();
      const refused = count();
      strikes.push({
        kind: fullKind,
        bitten: refused > 0,
        hit: [refused > 0 ? "writes" : "nobody who wrote"],
        outcome: ["space was given back"],
      });
    },
    calm: async () => rmSync(join(disk, "filler"), { force: true }),
  };
}

function fill(file: string): void {
  const handle = openSync(file, "w");
  for (const size of [1 << 20, 1 << 16, 1 << 12, 1]) {
    const block = Buffer.alloc(size);
    try {
      while (writeSync(handle, block) === size);
    } catch {}
  }
  closeSync(handle);
}

/** Files of a process cannot grow past a limit any more: its writes fail with an I/O error, those of others do not. */
export function errorFault(
  { random, strikes }: Deployment,
  pids: () => Promise<readonly number[]>,
  complaints: Complaints,
  user: User = {},
): Fault {
  return {
    kind: errorKind,
    counts: "writes of the process failed with an I/O error",
    weight: 1,
    alone: true,
    async play() {
      const count = complaintsSince(complaints);
      const limited = await pids();
      for (const pid of limited) limitFiles(pid, String(limitBytes), user);
      await systemClock.sleep(700 + random.int(800));
      for (const pid of limited) limitFiles(pid, "unlimited", user);
      const failed = count();
      strikes.push({
        kind: errorKind,
        bitten: failed > 0,
        hit: [failed > 0 ? "writes" : "nobody who wrote"],
        outcome: ["writes went through again"],
      });
    },
  };
}

/** Less than any log of a store that has worked for a second. */
const limitBytes = 65_536;

/** One worker at random. */
export const someWorker = (deployment: Deployment) => async (): Promise<number[]> => {
  const replica = anyOf(targets(deployment), deployment.random);
  return replica === undefined ? [] : [replica.pid];
};

/** Only its own user may limit a process, where root has not every right. */
type User = { readonly uid?: number; readonly gid?: number };

function limitFiles(pid: number, bytes: string, user: User): void {
  try {
    execFileSync("prlimit", ["--pid", String(pid), `--fsize=${bytes}:`], { stdio: "ignore", ...user });
  } catch {} // it has ended
}
