// A process that opens a store: `child.ts <file> kill <k>` is killed after the k-th statement, `child.ts <file> open`
// waits for a line on its standard input, opens, writes a run and prints it.
import { once } from "node:events";
import { openSqlite } from "../../../src/store/sqlite/open.ts";
import { dyingAfter } from "./crash.ts";
import { laterSqlite } from "./later.ts";

const [file = "", what, k] = process.argv.slice(2);
if (what === "kill") {
  const { open } = dyingAfter(Number(k), () => process.kill(process.pid, "SIGKILL"));
  await openSqlite({ file, open, migrations: laterSqlite });
} else {
  console.log("ready");
  await once(process.stdin, "data");
  const store = await openSqlite({ file, migrations: laterSqlite });
  const [created] = await store.intake.createRuns("acme", [{ id: `run-${process.pid}`, workflow: "w", input: 1 }]);
  const { schema } = await store.read.settings();
  await store.close();
  console.log(JSON.stringify({ ok: created?.ok, schema }));
  process.exit(0);
}
