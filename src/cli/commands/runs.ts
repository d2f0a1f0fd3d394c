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
  run: (invocation) =>
    withApp(
      invocation,
      async ({ app, store, tenant, runner }) => {
        const id = invocation.text("id") ?? systemRandom.uuid(systemClock.wall());
        const version = invocation.text("version");
        const labels = pairs("--label", invocation.all("label"));
        const budget = Object.entries(pairs("--budget", invocation.all("budget"))).map(([unit, amount]) => {
          const cap = Math.round(Number(amount) * 1_000_000);
          if (!Number.isSafeInteger(cap) || cap < 0)
            throw new UsageError(`--budget ${unit} is an amount, not ${amount}`);
          return [unit, cap] as const;
        });
        const workflow = invocation.arguments.workflow!;
        const input = inputOf(invocation.text("input"));
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
        if (!invocation.given("wait")) {
          if (wantsJson(invocation)) printJson(invocation, { id, fresh: verdict.fresh });
          else invocation.screen.line(verdict.fresh ? id : `${id}  (it was started before)`);
          return 0;
        }
        const outcome = await (await app.run(id)).result();
        if (wantsJson(invocation)) printJson(invocation, { id, fresh: verdict.fresh, outcome });
        else invocation.screen.line(`${id}  ${brief(outcome, 200)}`);
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
  run: (invocation) =>
    withApp(invocation, async ({ app, store }) => {
      const [label] = Object.entries(pairs("--label", invocation.all("label")));
      const workflow = invocation.text("workflow");
      const status = wordsOf("--status", invocation.text("status"), runStatuses);
      const before = wholeOf("--before", invocation.text("before"));
      const limit = wholeOf("--limit", invocation.text("limit")) ?? 50;
      const prefix = invocation.text("prefix");
      const now = await store.read.now();
      const found = await app.runs.list({
        limit,
        ...timesOf(invocation, now),
        ...(prefix === undefined ? {} : { prefix }),
        ...(invocation.given("doubt") ? { doubt: true } : {}),
        ...(workflow === undefined ? {} : { workflow }),
        ...(status === undefined ? {} : { status }),
        ...(label === undefined ? {} : { label: { key: label[0], value: label[1] } }),
        ...(before === undefined ? {} : { before }),
      });
      printRows(invocation, found, columns(now), "no run fits; start one with durable-tape start");
      const last = found.at(-1);
      if (!wantsJson(invocation) && found.length === limit && last !== undefined) {
        invocation.screen.line(invocation.screen.dim(`more: --before ${last.journal}`));
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

function timesOf(invocation: Invocation, now: number): Partial<Record<(typeof times)[keyof typeof times], number>> {
  return Object.fromEntries(
    Object.entries(times).flatMap(([option, field]) => {
      const text = invocation.text(option);
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
  run: (invocation) =>
    withApp(
      invocation,
      async ({ store, tenant, runner }) => {
        const { run, gate } = invocation.arguments as { run: string; gate: string };
        const value = jsonOf("--value", invocation.text("value") ?? "null");
        await assertGateValue(runner, gate, value);
        const open = (await store.read.gates(tenant, { run, open: true })).filter(({ name }) => name === gate);
        const binds = invocation.text("binds") ?? (open.length === 1 ? (open[0]!.binds ?? undefined) : undefined);
        const [key, by] = [invocation.text("key"), invocation.text("by")];
        const sent = await store.intake.signal(tenant, run, {
          name: gate,
          value,
          ...(key === undefined ? {} : { key }),
          ...(by === undefined ? {} : { by }),
          ...(binds === undefined ? {} : { binds }),
        });
        const early = open.length === 0 ? "; the gate is not open yet: the signal waits for it" : "";
        invocation.screen.line(sent.duplicate ? `note ${sent.n}: this key was sent before` : `note ${sent.n}${early}`);
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
  run: (invocation) =>
    withApp(invocation, async ({ app }) => {
      const audit = operatorOf(invocation);
      await app.cancel(invocation.arguments.run!, audit);
      const run = await app.runs.get(invocation.arguments.run!);
      const ended = run !== undefined && run.endedAt !== null; // at once, if it never began
      invocation.screen.line(`${invocation.arguments.run} ${ended ? `is ${run.status}` : "is invocation to stop"}`);
      return 0;
    }),
};

const redrive: Command = {
  name: "redrive",
  summary: "lets a stuck run go on from where it was",
  arguments: [runArgument],
  options: { ...operatorOptions, ...storeOptions },
  run: (invocation) =>
    withApp(invocation, async ({ app }) => {
      const audit = operatorOf(invocation);
      await app.redrive(invocation.arguments.run!, audit);
      invocation.screen.line(`${invocation.arguments.run} goes on as soon as somebody drives it`);
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
