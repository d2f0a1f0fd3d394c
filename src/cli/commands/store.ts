import { defined } from "../../base/defined.ts";
import type { Log } from "../../base/log.ts";
import { grantsOf, planMigration } from "../../host/open-store.ts";
import { runIds } from "../../host/run-ids.ts";
import { readList } from "../../store/read-all.ts";
import type { PlannedStep } from "../../store/sql/migration-plan.ts";
import { operatorOf, operatorOptions, outputOption, settingsOf, storeOptions, wholeOf, withApp } from "../app.ts";
import { type Command, type Invocation, UsageError } from "../command.ts";
import { brief, lasting, plural, printJson, printRows, timeOf, wantsJson } from "../output.ts";
import { complain } from "../screen.ts";

const timers: Command = {
  name: "timers",
  summary: "lists timers of runs, and the next firing of schedules",
  options: {
    run: { value: "ID", help: "filter by run" },
    limit: { value: "N", help: "maximum number of timers" },
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant }) => {
      const [run, limit] = [invocation.text("run"), wholeOf("--limit", invocation.text("limit"))];
      const [found, schedules, now] = await Promise.all([
        store.read.timers(tenant, defined({ run, limit })),
        run === undefined
          ? readList(
              (above) => store.read.schedules(tenant, { above }),
              ({ id }) => id,
            )
          : [],
        store.read.now(),
      ]);
      const ids = await runIds(store, tenant, found);
      const rows = [
        ...found.map(({ run: journal, purpose, status, dueAt }) => ({
          of: `run ${ids.get(journal) ?? journal}`,
          purpose,
          status: String(status),
          dueAt: dueAt as number | null,
        })),
        ...schedules.map(({ id, nextAt, paused }) => ({
          of: `schedule ${id}`,
          purpose: "schedule",
          status: paused ? "PAUSED" : "SET",
          dueAt: nextAt,
        })),
      ];
      printRows(
        invocation,
        rows,
        [
          { title: "OWNER", of: (row) => row.of },
          { title: "PURPOSE", of: ({ purpose }) => purpose },
          { title: "STATUS", of: ({ status }) => status },
          { title: "DUE", of: ({ dueAt }) => (dueAt === null ? "never" : timeOf(dueAt)) },
          {
            title: "IN",
            right: true,
            of: ({ dueAt, status }) =>
              dueAt === null || status !== "SET"
                ? ""
                : dueAt <= now
                  ? `${lasting(now - dueAt)} ago`
                  : lasting(dueAt - now),
          },
        ],
        "no timers set",
      );
      return 0;
    }),
};

const migrate: Command = {
  name: "migrate",
  summary: "creates or upgrades the store's schema",
  options: {
    plan: { help: "print each migration, what it blocks and for about how long, and change nothing" },
    grants: { value: "ROLE", help: "then print the grants that a PostgreSQL role needs to run Tape" },
    store: storeOptions.store,
    config: storeOptions.config,
    ...outputOption,
  },
  run: async (invocation) => {
    const role = invocation.text("grants");
    if (invocation.given("plan")) {
      if (role !== undefined) throw new UsageError("--grants prints after a migration; omit --plan");
      return showPlan(invocation);
    }
    const grants = role === undefined ? [] : await grantsOf(settingsOf(invocation).url, role);
    return withApp(
      invocation,
      async ({ store, url }) => {
        const { schema, epoch } = await store.read.settings();
        if (wantsJson(invocation)) {
          printJson(invocation, { url, schema, epoch, ...(role !== undefined && { grants }) });
          return 0;
        }
        invocation.screen.line(`${grants.length > 0 ? "-- " : ""}${url}: schema ${schema}, store epoch ${epoch}`);
        for (const grant of grants) invocation.screen.line(grant);
        return 0;
      },
      { create: true, log: progressLog },
    );
  },
};

/** Progress goes to stderr, because the output may be piped into a file. */
const progressLog: Log = (level, event, fields = {}) => {
  if (level === "debug" || !event.startsWith("store.")) return;
  const details = Object.entries(fields).map(([key, value]) => `${key} ${brief(value, 400)}`);
  complain(process.stderr, `${event.slice("store.".length).replaceAll("_", " ")}: ${details.join(", ")}`);
};

async function showPlan(invocation: Invocation): Promise<number> {
  const steps = await planMigration(settingsOf(invocation).url);
  printRows(
    invocation,
    steps,
    [
      { title: "MIGRATION", of: ({ migration }) => migration },
      { title: "BLOCKS", of: blocksText },
      { title: "ROWS", right: true, of: ({ rows }) => (rows === undefined ? "" : String(rows)) },
      { title: "TIME", right: true, of: ({ seconds }) => (seconds === 0 ? "< 1 s" : `about ${seconds} s`) },
      { title: "STATEMENT", of: ({ does }) => does },
    ],
    "the schema is up to date: nothing to migrate",
  );
  return 0;
}

const blocksText = ({ blocks, table }: PlannedStep): string =>
  blocks === "nothing" || table === undefined ? blocks : `${blocks} on ${table}`;

const restored: Command = {
  name: "store restored",
  summary:
    "run after restoring a backup: raises the store epoch, so that no token is issued twice, and ends every term",
  options: { ...operatorOptions, store: storeOptions.store, config: storeOptions.config },
  run: (invocation) => {
    const { by, reason } = operatorOf(invocation);
    return withApp(
      invocation,
      async ({ store, tenant }) => {
        const { epoch, ended } = await store.claim.restored(reason, by, undefined, tenant);
        invocation.screen.line(`store epoch ${epoch}; ${plural(ended, "term")} ended, all holders fenced`);
        return 0;
      },
      { restored: true },
    );
  },
};

export const storeCommands: readonly Command[] = [timers, migrate, restored];
