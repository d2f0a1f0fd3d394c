import { systemClock } from "../../base/clock.ts";
import { systemRandom } from "../../base/random.ts";
import { archiveOf } from "../../host/retention.ts";
import { TapeError } from "../../model/errors.ts";
import { notFound } from "../../model/not-found.ts";
import { archivedRun } from "../../retention/read.ts";
import type { ArchivedRun, Store } from "../../store/contract/store.ts";
import { operatorOf, operatorOptions, outputOption, settingsOf, storeOptions, wholeOf, withApp } from "../app.ts";
import type { Command, Invocation } from "../command.ts";
import { brief, type Column, lasting, plural, printJson, printRows, timeOf, wantsJson } from "../output.ts";
import { configuredRetention } from "../reactors/retention.ts";

const view: Command = {
  name: "retention",
  summary: "shows what retention would archive and delete, by workflow, and its last pass; changes nothing",
  options: {
    within: { value: "DURATION", help: "also what becomes due within this time, such as 7d" },
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant }) => {
      const found = await store.read.retention(tenant, invocation.duration("within"));
      if (wantsJson(invocation)) {
        printJson(invocation, found);
        return 0;
      }
      const now = await store.read.now();
      const { screen } = invocation;
      const { state, due, lagMs } = found;
      if (state === undefined) screen.line("no reactor retention has worked here; set tape.retention.archive");
      const late = lagMs > 0 ? `, the first for ${lasting(lagMs)}` : "";
      screen.line(`${plural(due, "tree")} due${late}`);
      for (const { workflow, trees, endedAt } of found.workflows)
        screen.line(`  ${workflow}: ${plural(trees, "tree")}, the oldest ended ${lasting(now - endedAt)} ago`);
      const { last } = state ?? {};
      if (last !== undefined) {
        const kept = Object.entries(last.kept).map(([reason, count]) => `${count} kept (${reason})`);
        const parts = [plural(last.runs, "run"), plural(last.files, "file"), `${last.bytes} bytes`, ...kept];
        screen.line(`last pass ${timeOf(last.at)}: ${parts.join(", ")}`);
        if (last.error !== undefined) screen.line(screen.bad(last.error));
      }
      return last?.error === undefined ? 0 : 3;
    }),
};

const runNow: Command = {
  name: "retention run",
  summary: "wakes the reactor retention, wherever it runs",
  options: { ...operatorOptions, ...storeOptions },
  run: (invocation) => {
    const audit = operatorOf(invocation);
    return withApp(invocation, async ({ store, tenant }) => {
      await store.intake.requestRetention(tenant, audit);
      invocation.screen.line(
        "requested; the next pass starts at once, or at its interval if the process does not listen",
      );
      return 0;
    });
  },
};

const columns: readonly Column<ArchivedRun>[] = [
  { title: "RUN", of: ({ id }) => id },
  { title: "ENDED", of: ({ endedAt }) => (endedAt === null ? "" : timeOf(endedAt)) },
  { title: "DELETED", of: ({ prunedAt }) => timeOf(prunedAt) },
  { title: "FILE", of: ({ archive }) => archive },
];

const archived: Command = {
  name: "archived",
  summary: "lists runs that were archived and deleted, by id",
  options: {
    after: { value: "RUN", help: "continue after this id" },
    limit: { value: "N", help: "maximum number of rows (default 50)" },
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant }) => {
      const above = invocation.text("after");
      const limit = wholeOf("--limit", invocation.text("limit")) ?? 50;
      const found = await store.read.archived(tenant, { limit, ...(above !== undefined && { above }) });
      printRows(invocation, found, columns, "no archived runs");
      return 0;
    }),
};

export const retentionCommands: readonly Command[] = [view, runNow, archived];

/** `inspect --archive`: the tombstone names the file, and the settings name the archive. */
export async function inspectArchived(invocation: Invocation, store: Store, tenant: string): Promise<number> {
  const id = invocation.arguments.run!;
  const [tombstone] = await store.read.archived(tenant, { id });
  if (tombstone === undefined) throw notFound("run", id);
  const options = await configuredRetention(settingsOf(invocation).config, process.cwd());
  if (options === undefined) {
    const message = `tape.retention.archive is not set: the run is in the file ${tombstone.archive} of its archive`;
    throw new TapeError("TAPE_BAD_CONFIG", message, { archive: tombstone.archive });
  }
  const archive = archiveOf("tape.retention", options.archive, { clock: systemClock, random: systemRandom });
  const { screen } = invocation;
  for await (const line of archivedRun(archive, tombstone.archive, id)) {
    if (wantsJson(invocation)) screen.line(JSON.stringify(line));
    else if (line.type === "run") screen.line(`${screen.bold(id)}  ${String(line.status)}  ${String(line.workflow)}`);
    else if (line.type === "record") {
      const seq = String(line.seq).padStart(5);
      screen.line(`${seq}  ${timeOf(Number(line.at))}  ${String(line.kind)}  ${brief(line.data, 120)}`);
    }
  }
  return 0;
}
