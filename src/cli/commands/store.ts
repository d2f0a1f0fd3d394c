import type { Log } from "../../base/log.ts";
import { grantsOf, planMigration } from "../../host/open-store.ts";
import { runIds } from "../../host/run-ids.ts";
import { readList } from "../../store/read-all.ts";
import { operatorOf, operatorOptions, outputOption, settingsOf, storeOptions, wholeOf, withApp } from "../app.ts";
import { type Command, type Invocation, UsageError } from "../command.ts";
import { brief, lasting, printJson, printRows, timeOf, wantsJson } from "../output.ts";
import { complain } from "../screen.ts";

const timers: Command = {
  name: "timers",
  summary: "lists timers of runs, and when schedules are due",
  options: {
    run: { value: "ID", help: "only this run's" },
    limit: { value: "N", help: "at most so many" },
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant }) => {
      const [run, limit] = [invocation.text("run"), wholeOf("--limit", invocation.text("limit"))];
      const [found, schedules, now] = await Promise.all([
        store.read.timers(tenant, { ...(run === undefined ? {} : { run }), ...(limit === undefined ? {} : { limit }) }),
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
          { title: "OF", of: (row) => row.of },
          { title: "FOR", of: ({ purpose }) => purpose },
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
        "no timer is set",
      );
      return 0;
    }),
};

const migrate: Command = {
  name: "migrate",
  summary: "makes the store, or brings it to this version's schema, beside processes that are at work",
  options: {
    plan: { help: "change nothing: say what would be done, who would wait for it, and about how long" },
    grants: { value: "ROLE", help: "afterwards print what a PostgreSQL role that only runs Tape has to be granted" },
    store: storeOptions.store,
    config: storeOptions.config,
    ...outputOption,
  },
  run: async (invocation) => {
    const role = invocation.text("grants");
    if (invocation.given("plan")) {
      if (role !== undefined) throw new UsageError("--grants is printed after a migration: leave --plan out");
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
      { create: true, log: tell },
    );
  },
};

/** Progress goes to stderr: what is printed otherwise may be piped into a file. */
const tell: Log = (level, event, fields = {}) => {
  if (level === "debug" || !event.startsWith("store.")) return;
  const words = Object.entries(fields).map(([key, value]) => `${key} ${brief(value, 400)}`);
  complain(process.stderr, `${event.slice("store.".length).replaceAll("_", " ")}: ${words.join(", ")}`);
};

async function showPlan(invocation: Invocation): Promise<number> {
  const steps = await planMigration(settingsOf(invocation).url);
  printRows(
    invocation,
    steps,
    [
      { title: "MIGRATION", of: ({ migration }) => migration },
      { title: "BLOCKS", of: ({ blocks, table }) => (blocks === "nobody" ? blocks : `${blocks} of ${table ?? "it"}`) },
      { title: "ROWS", right: true, of: ({ rows }) => (rows === undefined ? "" : String(rows)) },
      { title: "ABOUT", right: true, of: ({ seconds }) => (seconds === 0 ? "a moment" : `${seconds} s`) },
      { title: "DOES", of: ({ does }) => does },
    ],
    "the store has this version's schema: nothing is to be done",
  );
  return 0;
}

const restored: Command = {
  name: "store restored",
  summary: "after a restore: raises the store epoch, so that no token is issued twice, and ends every term",
  options: { ...operatorOptions, store: storeOptions.store, config: storeOptions.config },
  run: (invocation) => {
    const { by, reason } = operatorOf(invocation);
    return withApp(
      invocation,
      async ({ store, tenant }) => {
        const { epoch, ended } = await store.claim.restored(reason, by, undefined, tenant);
        invocation.screen.line(`store epoch ${epoch}; ${ended} terms were ended: whoever held one is fenced`);
        return 0;
      },
      { restored: true },
    );
  },
};

export const storeCommands: readonly Command[] = [timers, migrate, restored];
