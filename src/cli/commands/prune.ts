import { closeSync, openSync, writeSync } from "node:fs";
import type { RunStatus } from "../../model/machines.ts";
import { runMachine } from "../../model/machines.ts";
import type { JournalRecord } from "../../model/records.ts";
import type { RunView } from "../../store/contract/store.ts";
import { type OpenedStore, operatorOf, operatorOptions, storeOptions, withApp } from "../app.ts";
import { type Command, UsageError } from "../command.ts";
import { jsonText, plural } from "../output.ts";

/** Runs deleted in one transaction: few enough that no other writer waits noticeably. */
const batchRuns = 200;

export const prune: Command = {
  name: "prune",
  summary: "deletes finished runs older than a given age; ids stay reserved",
  options: {
    "older-than": { value: "DURATION", help: "time since the run ended, such as 90d" },
    export: { value: "FILE", help: "export the runs to this new file first, one JSON line per run with its journal" },
    "past-sinks": { help: "also delete runs with records that a sink has not passed: their events are lost" },
    "dry-run": { help: "count the runs and delete none" },
    ...operatorOptions,
    ...storeOptions,
  },
  run: (invocation) => {
    const age = invocation.duration("older-than");
    if (age === undefined) throw new UsageError("--older-than is required: a duration such as 90d");
    const dry = invocation.given("dry-run");
    const audit = dry ? undefined : operatorOf(invocation);
    return withApp(invocation, async (opened) => {
      const { store, tenant } = opened;
      const { screen } = invocation;
      const before = (await store.read.now()) - age;
      const file = invocation.text("export");
      if (dry || file !== undefined) {
        const found = await exportRuns(opened, before, dry ? undefined : file);
        screen.line(
          `${plural(found, "run")} ended before ${new Date(before).toISOString()}${dry || file === undefined ? "" : `, exported to ${file}`}`,
        );
        if (audit === undefined) return 0;
      }
      let deleted = 0;
      for (let batch = 1; batch > 0; deleted += batch) {
        batch = await store.intake.prune(tenant, before, batchRuns, audit, invocation.given("past-sinks"));
        if (batch > 0) screen.bar(`deleted ${deleted + batch}`, 1, 1);
      }
      screen.barDone();
      screen.line(`${plural(deleted, "run")} deleted; ids stay reserved`);
      return 0;
    });
  },
};

/** Counts the finished runs that are old enough and writes them to `file`, newest first. The file must not exist yet. */
async function exportRuns(
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
