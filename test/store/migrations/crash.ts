import { copyFileSync, existsSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { OpenDatabase } from "../../../src/store/sqlite/database.ts";

/**
 * A database that counts the statements executed over all its connections and calls `then` after the k-th. From then on
 * it is dead: every call fails, even a rollback, as if the process were gone.
 */
export function dyingAfter(k: number, then: () => void): { open: OpenDatabase; count: () => number } {
  let done = 0;
  const carriedOut = <T>(work: () => T): T => {
    if (done >= k) throw new Error("the process is gone");
    const result = work();
    if (++done === k) {
      then();
      throw new Error(`died after statement ${k}`);
    }
    return result;
  };
  class DyingDatabase extends DatabaseSync {
    override exec(sql: string): void {
      carriedOut(() => super.exec(sql));
    }
    override prepare(sql: string): StatementSync {
      return counting(super.prepare(sql), carriedOut);
    }
  }
  return { open: (file) => new DyingDatabase(file, { timeout: 0 }), count: () => done };
}

function counting(statement: StatementSync, carriedOut: <T>(work: () => T) => T): StatementSync {
  return new Proxy(statement, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target);
      if (typeof member !== "function") return member;
      const call = (...args: unknown[]): unknown => Reflect.apply(member, target, args);
      const runs = key === "run" || key === "get" || key === "all";
      return runs ? (...args: unknown[]) => carriedOut(() => call(...args)) : call;
    },
  });
}

/** What a crash at this moment leaves on the disk: the file and its log, without an orderly close of the connection. */
export function imageOf(file: string, to: string): void {
  for (const part of ["", "-wal"]) if (existsSync(file + part)) copyFileSync(file + part, to + part);
}
