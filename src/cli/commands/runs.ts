import { readFileSync } from "node:fs";
import { systemClock } from "../../base/clock.ts";
import { defined } from "../../base/defined.ts";
import type { Duration } from "../../base/duration.ts";
import { durationMs } from "../../base/duration.ts";
import { systemRandom } from "../../base/random.ts";
import { ServedWorkflows } from "../../engine/served.ts";
import { TapeError } from "../../model/errors.ts";
import { runStatuses } from "../../model/machines.ts";
import { queueOfStart } from "../../sdk/start-by-name.ts";
import { assertGateValue, assertInput, wholeMs } from "../../sdk/workflow.ts";
import type { RunView } from "../../store/contract/store.ts";
import {
  choicesOf,
  jsonOf,
  operatorOf,
  operatorOptions,
  outputOption,
  storeOptions,
  wholeOf,
  withApp,
} from "../app.ts";
import { type Command, type Invocation, UsageError } from "../command.ts";
import { brief, type Column, lasting, printJson, printRows, timeOf, wantsJson } from "../output.ts";
import { complain } from "../screen.ts";
import { pairsOf, startFieldsOf, startOptions } from "./start-options.ts";

/** On an idle machine a worker claims a new run within this time. */
const claimedWithinMs = 300;

const runArgument = { name: "run", help: "run id" } as const;

const start: Command = {
  name: "start",
  summary: "starts a run; repeating the same id and input returns the existing run",
  arguments: [{ name: "workflow", help: "workflow name" }],
  options: {
    input: { value: "JSON", help: "input of the run; @FILE reads it from a file" },
    id: { value: "ID", help: "id of the run (default: generated)" },
    label: { value: "KEY=VALUE", many: true, help: "label to filter runs by" },
    budget: { value: "UNIT=AMOUNT", many: true, help: "spending cap, such as usd=50" },
    version: { value: "TEXT", help: "workflow version to record with the run" },
    deadline: { value: "DURATION", help: "cancel the run if it has not ended this long after it began, such as 2h" },
    ...startOptions,
    wait: { help: "wait for the outcome; exits 1 if the run does not complete" },
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) =>
    withApp(
      invocation,
      async ({ app, store, tenant, runner }) => {
        const ownId = invocation.text("id") ?? systemRandom.uuid(systemClock.wall());
        const version = invocation.text("version");
        const labels = pairsOf("--label", invocation.all("label"));
        const budget = Object.entries(pairsOf("--budget", invocation.all("budget"))).map(([unit, amount]) => {
          const cap = Math.round(Number(amount) * 1_000_000);
          if (!Number.isSafeInteger(cap) || cap < 0)
            throw new UsageError(`--budget ${unit} must be an amount, not ${amount}`);
          return [unit, cap] as const;
        });
        const deadline = invocation.text("deadline");
        const deadlineMs = deadline === undefined ? undefined : wholeMs("start", "--deadline", deadline as Duration);
        const workflow = invocation.arguments.workflow!;
        const input = inputOf(invocation.text("input"));
        await assertInput(runner, workflow, input);
        const fields = await startFieldsOf(invocation, runner);
        const [created] = await store.intake.createRuns(tenant, [
          {
            id: ownId,
            workflow,
            input,
            ...defined({ version, deadlineMs }),
            ...(Object.keys(labels).length === 0 ? {} : { labels }),
            ...(budget.length === 0 ? {} : { budget: Object.fromEntries(budget) }),
            ...fields,
            ...queueOfStart(runner, { workflow, input, ...fields }),
          },
        ]);
        if (created?.ok !== true)
          throw created?.error ?? new TapeError("TAPE_INVARIANT", "createRuns returned no result");
        const { run: id = ownId } = created; // --unique may have found another run
        const here = [...runner.workflows.keys()];
        const hint = created.fresh
          ? await new ServedWorkflows(store, systemClock).hint(tenant, workflow, here)
          : undefined;
        // A worker that has just started may claim the run before it has reported its workflows.
        if (hint !== undefined) await systemClock.sleep(claimedWithinMs);
        if (hint !== undefined && (await app.runs.get(id))?.status === "RUNNABLE") {
          complain(process.stderr, `TAPE_NO_WORKER: ${hint}`);
        }
        if (!invocation.given("wait")) {
          if (wantsJson(invocation)) printJson(invocation, { id, fresh: created.fresh });
          else invocation.screen.line(created.fresh ? id : `${id}  (already started)`);
          return 0;
        }
        const outcome = await (await app.run(id)).result();
        if (wantsJson(invocation)) printJson(invocation, { id, fresh: created.fresh, outcome });
        else invocation.screen.line(`${id}  ${brief(outcome, 200)}`);
        return 0;
      },
      { create: true, runner: true },
    ),
};

const columns = (now: number, found: readonly RunView[]): readonly Column<RunView>[] => [
  { title: "RUN", of: ({ id }) => id },
  { title: "STATUS", of: ({ status }) => status },
  { title: "WORKFLOW", of: ({ workflow }) => workflow },
  ...(found.some(({ lease }) => lease.queue)
    ? [{ title: "QUEUE", of: ({ lease }: RunView) => lease.queue ?? "" }]
    : []),
  { title: "STARTED", of: ({ createdAt }) => timeOf(createdAt) },
  { title: "TOOK", right: true, of: ({ createdAt, endedAt }) => lasting((endedAt ?? now) - createdAt) },
  { title: "HELD BY", of: ({ lease }) => (lease.owner === null ? "" : `${lease.label} #${lease.token}`) },
  { title: "OUTCOME", of: outcomeOf },
];

/** The error of a run that failed, the outcome of another that has ended. */
function outcomeOf({ outcome, error, endedAt }: RunView): string {
  if (error !== undefined) return brief(`${error.code ?? error.name}: ${error.message}`, 60);
  return endedAt === null ? "" : brief(outcome, 40);
}

const runs: Command = {
  name: "runs",
  summary: "lists runs, newest first (with --prefix: by id)",
  options: {
    status: { value: "STATUS,…", help: "filter by status, such as RUNNING,STUCK" },
    workflow: { value: "NAME", help: "filter by workflow" },
    label: { value: "KEY=VALUE", many: true, help: "filter by label: all keys, one of the values of each" },
    prefix: { value: "TEXT", help: "filter by id prefix" },
    since: { value: "WHEN", help: "started at or after: a time, or an age such as 2h" },
    until: { value: "WHEN", help: "started before: a time, or an age such as 2h" },
    "ended-since": { value: "WHEN", help: "ended at or after: a time, or an age such as 2h" },
    "ended-until": { value: "WHEN", help: "ended before: a time, or an age such as 2h" },
    "in-doubt": { help: "only runs with an UNKNOWN or STUCK effect or obligation" },
    limit: { value: "N", help: "maximum number of rows (default 50)" },
    after: { value: "N", help: "continue after the page that ended with this number" },
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) =>
    withApp(invocation, async ({ app, store }) => {
      const labels = labelsOf(invocation.all("label"));
      const workflow = invocation.text("workflow");
      const status = choicesOf("--status", invocation.text("status"), runStatuses);
      const after = wholeOf("--after", invocation.text("after"));
      const limit = wholeOf("--limit", invocation.text("limit")) ?? 50;
      const prefix = invocation.text("prefix");
      const now = await store.read.now();
      const found = await app.runs.list({
        limit,
        ...timesOf(invocation, now),
        ...(invocation.given("in-doubt") ? { inDoubt: true } : {}),
        ...defined({ prefix, workflow, status, before: after }),
        ...(Object.keys(labels).length === 0 ? {} : { labels }),
      });
      printRows(invocation, found, columns(now, found), "no runs match; start one with durable-tape start");
      const last = found.at(-1);
      if (!wantsJson(invocation) && found.length === limit && last !== undefined) {
        invocation.screen.line(invocation.screen.dim(`more: --after ${last.journal}`));
      }
      return 0;
    }),
};

/** `stage=paid stage=sent customer=acme`: the values of each key. */
function labelsOf(given: readonly string[]): Record<string, string[]> {
  const pairs = given.flatMap((one) => Object.entries(pairsOf("--label", [one])));
  const byKey = Map.groupBy(pairs, ([key]) => key);
  return Object.fromEntries([...byKey].map(([key, of]) => [key, of.map(([, value]) => value)]));
}

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
      if (Number.isNaN(at))
        throw new UsageError(`--${option} must be a time such as 2026-11-16T08:00Z or 2h, not ${text}`);
      return [[field, Math.max(0, Math.round(at))]];
    }),
  );
}

const signal: Command = {
  name: "signal",
  summary: "sends a signal to a run's gate, for example an approval",
  arguments: [runArgument, { name: "gate", help: "gate name" }],
  options: {
    value: { value: "JSON", help: "value of the signal (default: null)" },
    key: { value: "TEXT", help: "idempotency key" },
    binds: {
      value: "HASH",
      help: "answer only an open gate that binds this call (default: the call that the open gate binds)",
    },
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
        const mustMatch = open.length === 1 || invocation.text("binds") !== undefined;
        const sent = await store.intake.signal(tenant, run, {
          name: gate,
          value,
          ...defined({ key, by, binds }),
          ...(mustMatch && { mustMatch }),
        });
        const early = open.length === 0 ? "; the gate is not open yet, the signal waits for it" : "";
        invocation.screen.line(
          sent.duplicate ? `note ${sent.n}: duplicate key, already sent` : `note ${sent.n}${early}`,
        );
        return 0;
      },
      { runner: true },
    ),
};

const cancel: Command = {
  name: "cancel",
  summary: "requests cancellation: the run stops, cleans up and compensates what it owes",
  arguments: [runArgument],
  options: { ...operatorOptions, ...storeOptions },
  run: (invocation) =>
    withApp(invocation, async ({ app }) => {
      const audit = operatorOf(invocation);
      await app.cancel(invocation.arguments.run!, audit);
      const run = await app.runs.get(invocation.arguments.run!);
      const ended = run !== undefined && run.endedAt !== null; // immediately, if it never started
      invocation.screen.line(`${invocation.arguments.run}: ${ended ? run.status : "cancel requested"}`);
      return 0;
    }),
};

const redrive: Command = {
  name: "redrive",
  summary: "resumes a stuck run, at once or later",
  arguments: [runArgument],
  options: {
    in: { value: "DURATION", help: "resumes it after this time, such as 10m; a later redrive replaces the timer" },
    ...operatorOptions,
    ...storeOptions,
  },
  run: (invocation) =>
    withApp(invocation, async ({ app }) => {
      const audit = operatorOf(invocation);
      const after = invocation.text("in");
      await app.redrive(invocation.arguments.run!, { ...audit, ...(after !== undefined && { in: after as Duration }) });
      const when = after === undefined ? "redriven, waiting for a worker" : `to be redriven in ${after}`;
      invocation.screen.line(`${invocation.arguments.run}: ${when}`);
      return 0;
    }),
};

export const runCommands: readonly Command[] = [start, runs, signal, cancel, redrive];

/** The value of --input. */
export function inputOf(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  if (!text.startsWith("@")) return jsonOf("--input", text);
  try {
    return jsonOf("--input", readFileSync(text.slice(1), "utf8"));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`--input: ${error instanceof Error ? error.message : String(error)}`);
  }
}
