import { execFileSync } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { anyOf, type Deployment, type Fault, targets } from "../fault.ts";

export const fullKind = "disk full";
export const errorKind = "I/O error";

/** Log files that show the errors of a failing disk. */
export interface DiskErrorLogs {
  readonly files: () => readonly string[];
  readonly pattern: RegExp;
}

/** Counts the matching lines that the logs got since this call. */
function errorsSince({ files, pattern }: DiskErrorLogs): () => number {
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

/** Fills the store's disk, and frees it again. */
export function fullFault(
  { random, injections }: Deployment,
  disk: string,
  errorLogs: DiskErrorLogs,
  after: () => Promise<void> = async () => {},
): Fault {
  return {
    kind: fullKind,
    effectiveWhen: "writes of ours failed because no space was left",
    weight: 1,
    exclusive: true,
    async inject() {
      const count = errorsSince(errorLogs);
      const filler = join(disk, "filler");
      fill(filler);
      await systemClock.sleep(1_000 + random.int(1_500));
      rmSync(filler, { force: true });
      await after();
      const failed = count();
      injections.push({
        kind: fullKind,
        effective: failed > 0,
        hit: [failed > 0 ? "writes" : "no writer"],
        outcome: ["space was freed"],
      });
    },
    cleanUp: async () => rmSync(join(disk, "filler"), { force: true }),
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

/** Limits the size of files of a process: its writes fail with an I/O error, those of other processes do not. */
export function errorFault(
  { random, injections }: Deployment,
  pids: () => Promise<readonly number[]>,
  errorLogs: DiskErrorLogs,
  user: User = {},
): Fault {
  return {
    kind: errorKind,
    effectiveWhen: "writes of the process failed with an I/O error",
    weight: 1,
    exclusive: true,
    async inject() {
      const count = errorsSince(errorLogs);
      const limited = await pids();
      for (const pid of limited) limitFiles(pid, String(limitBytes), user);
      await systemClock.sleep(700 + random.int(800));
      for (const pid of limited) limitFiles(pid, "unlimited", user);
      const failed = count();
      injections.push({
        kind: errorKind,
        effective: failed > 0,
        hit: [failed > 0 ? "writes" : "no writer"],
        outcome: ["writes succeeded again"],
      });
    },
  };
}

/** Less than the log of any store after one second of work. */
const limitBytes = 65_536;

/** One worker at random. */
export const someWorker = (deployment: Deployment) => async (): Promise<number[]> => {
  const replica = anyOf(targets(deployment), deployment.random);
  return replica === undefined ? [] : [replica.pid];
};

/** Where root lacks privileges, only the process's own user may limit it. */
type User = { readonly uid?: number; readonly gid?: number };

function limitFiles(pid: number, bytes: string, user: User): void {
  try {
    execFileSync("prlimit", ["--pid", String(pid), `--fsize=${bytes}:`], { stdio: "ignore", ...user });
  } catch {} // it has ended
}
