import { readFileSync } from "node:fs";
import { systemClock } from "../../base/clock.ts";
import { durationMs } from "../../base/duration.ts";
import { systemRandom } from "../../base/random.ts";
import { ServedWorkflows } from "../../engine/served.ts";
import { TapeError } from "../../model/errors.ts";
import { runStatuses } from "../../model/machines.ts";
import { assertGateValue, assertInput } from "../../sdk/workflow.ts";
import type { RunView } from "../../store/contract/store.ts";
import { jsonOf, operatorOf, operatorOptions, outputOption, storeOptions, wholeOf, withApp, wordsOf } from "../app.ts";
import { type Command, type Invocation, UsageError } from "../command.ts";
import { brief, type Column, lasting, printJson, printRows, timeOf, wantsJson } from "../output.ts";
import { complain } from "../screen.ts";

/** How long a run that is served lies before somebody takes it, at most, on a quiet machine. */
const takenMs = 300;

const runArgument = { name: "run", help: "the run's id" } as const;

const start: Command = {
  name: "start",
  summary: "starts a run; the same id and input again find the same run",
  arguments: [{ name: "workflow", help: "the workflow's name" }],
  options: {
    input: { value: "JSON", help: "its input; @FILE reads a file" },
    id: { value: "ID", help: "the run's id; default: a fresh one" },
    label: { value: "KEY=VALUE", many: true, help: "a label to find it by" },
    budget: { value: "UNIT=AMOUNT", many: true, help: "a cap, as in usd=50" },
    version: { value: "TEXT", help: "the version of the workflow it was started with" },
    wait: { help: "waits for its outcome; exit code 1 if it did not end well" },
    ...storeOptions,
    ...outputOption,
  },
  run: (asked) =>
    withApp(
      asked,
      async ({ app, store, tenant, runner }) => {
        const id = asked.text("id") ?? systemRandom.uuid(systemClock.wall());
        const version = asked.text("version");
        const labels = pairs("--label", asked.all("label"));
        const budget = Object.entries(pairs("--budget", asked.all("budget"))).map(([unit, amount]) => {
          const cap = Math.round(Number(amount) * 1_000_000);
          if (!Number.isSafeInteger(cap) || cap < 0)
            throw new UsageError(`--budget ${unit} is an amount, not ${amount}`);
          return [unit, cap] as const;
        });
        const workflow = asked.arguments.workflow!;
        const input = inputOf(asked.text("input"));
        await assertInput(runner, workflow, input);
        const [verdict] = await store.intake.createRuns(tenant, [
          {
            id,
            workflow,
            input,
            ...(version === undefined ? {} : { version }),
            ...(Object.keys(labels).length === 0 ? {} : { labels }),
            ...(budget.length === 0 ? {} : { budget: Object.fromEntries(budget) }),
          },
        ]);
        if (verdict?.ok !== true) throw verdict?.error ?? new TapeError("TAPE_INVARIANT", "no verdict");
        const here = [...runner.workflows.keys()];
        const hint = verdict.fresh
          ? await new ServedWorkflows(store, systemClock).hint(tenant, workflow, here)
          : undefined;
        // A process that came a moment ago has not reported yet, but has perhaps taken it.
        if (hint !== undefined) await systemClock.sleep(takenMs);
        if (hint !== undefined && (await app.runs.get(id))?.status === "RUNNABLE") {
          complain(process.stderr, `TAPE_NO_WORKER: ${hint}`);
        }
        if (!asked.given("wait")) {
          if (wantsJson(asked)) printJson(asked, { id, fresh: verdict.fresh });
          else asked.screen.line(verdict.fresh ? id : `${id}  (it was started before)`);
          return 0;
        }
        const outcome = await (await app.run(id)).result();
        if (wantsJson(asked)) printJson(asked, { id, fresh: verdict.fresh, outcome });
        else asked.screen.line(`${id}  ${brief(outcome, 200)}`);
        return 0;
      },
      { create: true, runner: true },
    ),
};

const columns = (now: number): readonly Column<RunView>[] => [
  { title: "RUN", of: ({ id }) => id },
  { title: "STATUS", of: ({ status }) => status },
  { title: "WORKFLOW", of: ({ workflow }) => workflow },
  { title: "STARTED", of: ({ createdAt }) => timeOf(createdAt) },
  { title: "TOOK", right: true, of: ({ createdAt, endedAt }) => lasting((endedAt ?? now) - createdAt) },
  { title: "HELD BY", of: ({ lease }) => (lease.owner === null ? "" : `${lease.label} #${lease.token}`) },
  { title: "OUTCOME", of: ({ outcome, endedAt }) => (endedAt === null ? "" : brief(outcome, 40)) },
];

const runs: Command = {
  name: "runs",
  summary: "lists runs, newest first; by the beginning of their id in its order",
  options: {
    status: { value: "STATUS,…", help: "only these, as in RUNNING,STUCK" },
    workflow: { value: "NAME", help: "only this workflow's" },
    label: { value: "KEY=VALUE", help: "only those with this label" },
    prefix: { value: "TEXT", help: "only those whose id begins so" },
    since: { value: "WHEN", help: "only those started since then: a time, or as long ago as 2h" },
    until: { value: "WHEN", help: "only those started before then" },
    "ended-since": { value: "WHEN", help: "only those that ended since then" },
    "ended-until": { value: "WHEN", help: "only those that ended before then" },
    doubt: { help: "only those with an effect or an obligation that is UNKNOWN or STUCK" },
    limit: { value: "N", help: "at most so many; default 50" },
    before: { value: "N", help: "goes on after the listing that ended with this number" },
    ...storeOptions,
    ...outputOption,
  },
  run: (asked) =>
    withApp(asked, async ({ app, store }) => {
      const [label] = Object.entries(pairs("--label", asked.all("label")));
      const workflow = asked.text("workflow");
      const status = wordsOf("--status", asked.text("status"), runStatuses);
      const before = wholeOf("--before", asked.text("before"));
      const limit = wholeOf("--limit", asked.text("limit")) ?? 50;
      const prefix = asked.text("prefix");
      const now = await store.read.now();
      const found = await app.runs.list({
        limit,
        ...timesOf(asked, now),
        ...(prefix === undefined ? {} : { prefix }),
        ...(asked.given("doubt") ? { doubt: true } : {}),
        ...(workflow === undefined ? {} : { workflow }),
        ...(status === undefined ? {} : { status }),
        ...(label === undefined ? {} : { label: { key: label[0], value: label[1] } }),
        ...(before === undefined ? {} : { before }),
      });
      printRows(asked, found, columns(now), "no run fits; start one with durable-tape start");
      const last = found.at(-1);
      if (!wantsJson(asked) && found.length === limit && last !== undefined) {
        asked.screen.line(asked.screen.dim(`more: --before ${last.journal}`));
      }
      return 0;
    }),
};

const times = {
  since: "startedSince",
  until: "startedUntil",
  "ended-since": "endedSince",
  "ended-until": "endedUntil",
} as const;

function timesOf(asked: Invocation, now: number): Partial<Record<(typeof times)[keyof typeof times], number>> {
  return Object.fromEntries(
    Object.entries(times).flatMap(([option, field]) => {
      const text = asked.text(option);
      if (text === undefined) return [];
      const ago = durationMs(text as never);
      const at = ago === undefined ? Date.parse(text) : now - ago;
      if (Number.isNaN(at)) throw new UsageError(`--${option} is a time as in 2026-11-16T08:00Z or 2h, not ${text}`);
      return [[field, Math.max(0, Math.round(at))]];
    }),
  );
}

const signal: Command = {
  name: "signal",
  summary: "sends a signal to a run's gate, for example an approval",
  arguments: [runArgument, { name: "gate", help: "the gate's name" }],
  options: {
    value: { value: "JSON", help: "what the gate gets; default: null" },
    key: { value: "TEXT", help: "sent twice with one key, it counts once" },
    binds: { value: "HASH", help: "holds for this very act alone; default: what the open gate binds" },
    by: operatorOptions.by,
    ...storeOptions,
  },
  run: (asked) =>
    withApp(
      asked,
      async ({ store, tenant, runner }) => {
        const { run, gate } = asked.arguments as { run: string; gate: string };
        const value = jsonOf("--value", asked.text("value") ?? "null");
        await assertGateValue(runner, gate, value);
        const open = (await store.read.gates(tenant, { run, open: true })).filter(({ name }) => name === gate);
        const binds = asked.text("binds") ?? (open.length === 1 ? (open[0]!.binds ?? undefined) : undefined);
        const [key, by] = [asked.text("key"), asked.text("by")];
        const sent = await store.intake.signal(tenant, run, {
          name: gate,
          value,
          ...(key === undefined ? {} : { key }),
          ...(by === undefined ? {} : { by }),
          ...(binds === undefined ? {} : { binds }),
        });
        const early = open.length === 0 ? "; the gate is not open yet: the signal waits for it" : "";
        asked.screen.line(sent.duplicate ? `note ${sent.n}: this key was sent before` : `note ${sent.n}${early}`);
        return 0;
      },
      { runner: true },
    ),
};

const cancel: Command = {
  name: "cancel",
  summary: "asks a run to stop, to clean up and to undo what it owes",
  arguments: [runArgument],
  options: { ...operatorOptions, ...storeOptions },
  run: (asked) =>
    withApp(asked, async ({ app }) => {
      const person = operatorOf(asked);
      await app.cancel(asked.arguments.run!, person);
      const run = await app.runs.get(asked.arguments.run!);
      const ended = run !== undefined && run.endedAt !== null; // at once, if it never began
      asked.screen.line(`${asked.arguments.run} ${ended ? `is ${run.status}` : "is asked to stop"}`);
      return 0;
    }),
};

const redrive: Command = {
  name: "redrive",
  summary: "lets a stuck run go on from where it was",
  arguments: [runArgument],
  options: { ...operatorOptions, ...storeOptions },
  run: (asked) =>
    withApp(asked, async ({ app }) => {
      const person = operatorOf(asked);
      await app.redrive(asked.arguments.run!, person);
      asked.screen.line(`${asked.arguments.run} goes on as soon as somebody drives it`);
      return 0;
    }),
};

export const runCommands: readonly Command[] = [start, runs, signal, cancel, redrive];

function inputOf(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  if (!text.startsWith("@")) return jsonOf("--input", text);
  try {
    return jsonOf("--input", readFileSync(text.slice(1), "utf8"));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`--input: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function pairs(what: string, words: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    words.map((word) => {
      const cut = word.indexOf("=");
      if (cut < 1) throw new UsageError(`${what} is KEY=VALUE, not ${word}`);
      return [word.slice(0, cut), word.slice(cut + 1)];
    }),
  );
}
