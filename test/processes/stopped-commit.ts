import { DatabaseSync, type StatementSync } from "node:sqlite";
import { TapeError } from "../../src/model/errors.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import type { Reply } from "./messages.ts";

/** A process that stops inside a transaction: after all writes, before COMMIT, with the file locked. */
let stop = false;

class StoppedBeforeCommit extends DatabaseSync {
  override prepare(sql: string): StatementSync {
    const statement = super.prepare(sql);
    if (sql !== "commit") return statement;
    const commit = statement.run.bind(statement);
    const value = () => {
      if (stop) process.kill(process.pid, "SIGSTOP"); // takes effect before the call returns
      return commit();
    };
    return Object.defineProperty(statement, "run", { value });
  }
}

const open = (file: string): DatabaseSync => new StoppedBeforeCommit(file, { timeout: 0 });
const store = await openSqlite({ file: process.argv[2]!, open });

process.on("message", async () => {
  stop = true;
  const outcome = await store.intake.putValue("default", "stopped", 1, "must_create").then(
    () => "accepted",
    (error: unknown) => (error instanceof TapeError ? error.code : String(error)),
  );
  process.send!({ result: outcome } satisfies Reply);
});
process.send!({ result: "ready" } satisfies Reply);
