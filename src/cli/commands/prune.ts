import { closeSync, openSync, writeSync } from "node:fs";
import type { RunStatus } from "../../model/machines.ts";
import { runMachine } from "../../model/machines.ts";
import type { JournalRecord } from "../../model/records.ts";
import type { RunView } from "../../store/contract/store.ts";
import { type OpenedStore, operatorOf, operatorOptions, storeOptions, withApp } from "../app.ts";
import { type Command, UsageError } from "../command.ts";
import { jsonText } from "../output.ts";

/** Runs deleted in one transaction: few enough that nobody waits for it. */
const together = 200;

export const prune: Command = {
  name: "prune",
  summary: "deletes finished runs that ended long ago, exported first if wanted; their ids stay taken",
  options: {
    older: { value: "DURATION", help: "ended at least so long ago, as in 90d" },
    export: { value: "FILE", help: "a new file that gets them first: a run a line, with its journal" },
    "dry-run": { help: "says how many there are, and deletes none" },
    ...operatorOptions,
    ...storeOptions,
  },
  run: (invocation) => {
    const age = invocation.duration("older");
    if (age === undefined) throw new UsageError("--older is a duration as in 90d");
    const dry = invocation.given("dry-run");
    const audit = dry ? undefined : operatorOf(invocation);
    return withApp(invocation, async (opened) => {
      const { store, tenant } = opened;
      const { screen } = invocation;
      const before = (await store.read.now()) - age;
      const file = invocation.text("export");
      if (dry || file !== undefined) {
        const found = await exported(opened, before, dry ? undefined : file);
        screen.line(
          `${found} runs ended before ${new Date(before).toISOString()}${dry || file === undefined ? "" : `, exported to ${file}`}`,
        );
        if (audit === undefined) return 0;
      }
      let gone = 0;
      for (let some = 1; some > 0; gone += some) {
        some = await store.intake.prune(tenant, before, together, audit);
        if (some > 0) screen.bar(`deleted ${gone + some}`, 1, 1);
      }
      screen.barDone();
      screen.line(`${gone} runs deleted; their ids stay taken`);
      return 0;
    });
  },
};

/** Goes through the finished runs, newest first, and writes those that are old enough. The file must be new. */
async function exported(
  { app, store, tenant }: OpenedStore,
  before: number,
  file: string | undefined,
): Promise<number> {
  const out = file === undefined ? undefined : openSync(file, "wx", 0o600);
  let count = 0;
  try {
    for (let last: RunView | undefined; ; ) {
      const page = await store.read.runs(tenant, {
        status: runMachine.final as readonly RunStatus[],
        ...(last !== undefined && { before: last.journal }),
      });
      for (const run of page) {
        if (run.endedAt === null || run.endedAt >= before) continue;
        count++;
        if (out === undefined) continue;
        const journal: JournalRecord[] = [];
        for await (const record of app.journal(run.id)) journal.push(record);
        writeSync(out, `${jsonText({ run, journal }, 0)}\n`);
      }
      last = page.at(-1);
      if (last === undefined) return count;
    }
  } finally {
    if (out !== undefined) closeSync(out);
  }
}
