import { systemClock } from "../../base/clock.ts";
import { systemRandom } from "../../base/random.ts";
import { archiveOf } from "../../host/retention.ts";
import { TapeError } from "../../model/errors.ts";
import { notFound } from "../../model/not-found.ts";
import { eraseArchived } from "../../retention/erase-archived.ts";
import { type OpenedStore, operatorOf, operatorOptions, settingsOf, storeOptions, withApp } from "../app.ts";
import type { Command, Invocation } from "../command.ts";
import { plural } from "../output.ts";
import { configuredRetention } from "../reactors/retention.ts";

export const erase: Command = {
  name: "erase",
  summary: "erases the payloads of a run that has ended, for good; its journal stays readable",
  arguments: [{ name: "run", help: "run id" }],
  options: {
    tree: { help: "erase all runs of its tree, whose records have copies of its payloads" },
    archive: { help: "erase a run that was archived and deleted: writes its file of the archive again" },
    ...operatorOptions,
    ...storeOptions,
  },
  run: (invocation) => {
    const audit = operatorOf(invocation);
    const id = invocation.arguments.run!;
    return withApp(invocation, async (opened) => {
      if (invocation.given("archive")) return eraseFromArchive(invocation, opened, audit);
      const { screen } = invocation;
      const tree = invocation.given("tree");
      const onPart = (records: number): void => screen.bar(`erased ${plural(records, "record")}`, 1, 1);
      const done = await opened.app.erase(id, { ...audit, tree, onPart });
      screen.barDone();
      const what = `${plural(done.records, "record")} of ${plural(done.runs, "run")}`;
      screen.line(done.already ? `${id}: was erased before` : `${id}: erased ${what}`);
      for (const copy of done.copies ?? []) screen.line(`run ${copy} has a copy of its input; erase that run, too`);
      screen.line("not erased: the audit log, backups, and what sinks have sent on");
      return 0;
    });
  },
};

async function eraseFromArchive(
  invocation: Invocation,
  { store, tenant }: OpenedStore,
  audit: { readonly by: string; readonly reason: string },
): Promise<number> {
  const run = invocation.arguments.run!;
  const [tombstone] = await store.read.archived(tenant, { id: run });
  if (tombstone === undefined) throw notFound("run", run);
  const { archive: file } = tombstone;
  const options = await configuredRetention(settingsOf(invocation).config, process.cwd());
  if (options === undefined) {
    const message = `tape.retention.archive is not set: the run is in the file ${file} of its archive`;
    throw new TapeError("TAPE_BAD_CONFIG", message, { archive: file });
  }
  const archive = archiveOf("tape.retention", options.archive, { clock: systemClock, random: systemRandom });
  await store.intake.recordAudit(tenant, "archive.erase", audit, { run, archive: file });
  const runs = await eraseArchived(archive, file, run, { signal: new AbortController().signal });
  invocation.screen.line(`${run}: erased ${plural(runs, "run")} in ${file}; copies of the file are not`);
  return 0;
}
