import { defined } from "../../base/defined.ts";
import { explainQueue } from "../../engine/served.ts";
import { notFound } from "../../model/not-found.ts";
import type { QueueChange, RateLimit } from "../../model/queue.ts";
import type { PartitionView, QueueView, Store } from "../../store/contract/store.ts";
import { readKeys, readQueues } from "../../store/read-queues.ts";
import { operatorOf, operatorOptions, outputOption, storeOptions, wholeOf, withApp } from "../app.ts";
import { type Command, durationOption, type Invocation, UsageError } from "../command.ts";
import { type Column, lasting, printJson, printRows, wantsJson } from "../output.ts";
import { keyText, pauseText, positionLines, queueState, rateText, slotsText } from "./queue-text.ts";

const queueArgument = { name: "queue", help: "queue name" } as const;
const keyOption = { value: "KEY", help: "only this key of the queue" } as const;

const columns = (now: number): readonly Column<QueueView>[] => [
  { title: "QUEUE", of: ({ name }) => name },
  { title: "RUNNING", right: true, of: ({ running, limits }) => slotsText(running, limits.concurrency) },
  { title: "WAITING", right: true, of: ({ waiting, more }) => `${waiting}${more ? " or more" : ""}` },
  { title: "KEYS", right: true, of: ({ keys, more }) => `${keys}${more ? " or more" : ""}` },
  { title: "OLDEST", right: true, of: ({ oldestWaitMs }) => (oldestWaitMs === undefined ? "" : lasting(oldestWaitMs)) },
  { title: "STARTED", right: true, of: ({ started }) => started },
  { title: "RATE", of: ({ limits }) => (limits.rate === undefined ? "" : rateText(limits.rate)) },
  { title: "COUNTS", of: ({ spec }) => spec.counts },
  { title: "SET", of: ({ override }) => (override === undefined ? "" : changeText(override)) },
  { title: "STATE", of: (queue) => queueState(queue, now) },
];

const keyColumns = (now: number): readonly Column<PartitionView>[] => [
  { title: "KEY", of: ({ key }) => keyText(key) },
  { title: "RUNNING", right: true, of: ({ running }) => running },
  { title: "WAITING", right: true, of: ({ waiting }) => waiting },
  { title: "OLDEST", right: true, of: ({ oldestWaitMs }) => (oldestWaitMs === undefined ? "" : lasting(oldestWaitMs)) },
  { title: "WEIGHT", right: true, of: ({ weight }) => weight },
  {
    title: "STATE",
    of: ({ paused, nextAt, ready, waiting }) => {
      if (paused !== undefined) return pauseText(paused);
      if (nextAt !== undefined && nextAt > now) return `rate: next in ${lasting(nextAt - now)}`;
      return waiting > 0 && !ready ? "full" : "";
    },
  },
];

/** "concurrency 20, rate none". */
function changeText({ concurrency, rate, perKey = {} }: QueueChange): string {
  const slots = (name: string, limit: number | null | undefined): string[] =>
    limit === undefined ? [] : [`${name} ${limit ?? "none"}`];
  const pace = (name: string, limit: RateLimit | null | undefined): string[] =>
    limit === undefined ? [] : [`${name} ${limit === null ? "none" : rateText(limit)}`];
  return [
    ...slots("concurrency", concurrency),
    ...pace("rate", rate),
    ...slots("key concurrency", perKey.concurrency),
    ...pace("key rate", perKey.rate),
  ].join(", ");
}

const queues: Command = {
  name: "queues",
  summary: "lists queues: slots held, waiting runs, oldest wait, limits, pauses",
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant }) => {
      const [found, now] = await Promise.all([readQueues(store.read, tenant), store.read.now()]);
      printRows(invocation, found, columns(now), "no queues; list one in createRunner({ queues })");
      return 0;
    }),
};

const keys: Command = {
  name: "queue keys",
  summary: "lists the keys of a queue that have runs, longest wait first",
  arguments: [queueArgument],
  options: { limit: { value: "N", help: "maximum number of rows (default 50)" }, ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant }) => {
      const limit = wholeOf("--limit", invocation.text("limit")) ?? 50;
      const { keys: found, more } = await readKeys(store.read, tenant, invocation.arguments.queue!);
      const now = await store.read.now();
      printRows(invocation, found.slice(0, limit), keyColumns(now), "no key has runs");
      const { screen } = invocation;
      if (!wantsJson(invocation) && (more || found.length > limit)) screen.line(screen.dim("more: --limit N"));
      return 0;
    }),
};

const explain: Command = {
  name: "queue explain",
  summary: "explains where a run is in its queue, and why it does not start",
  arguments: [{ name: "run", help: "run id" }],
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant }) => {
      const id = invocation.arguments.run!;
      const position = await explainQueue(store, tenant, id);
      if (position === undefined && (await store.read.run(tenant, id)) === undefined) throw notFound("run", id);
      const now = await store.read.now();
      if (wantsJson(invocation)) printJson(invocation, position ?? null);
      else if (position === undefined) invocation.screen.line(`${id} is in no queue`);
      else for (const line of positionLines(position, now)) invocation.screen.line(line);
      return 0;
    }),
};

function pauseCommand(verb: "pause" | "resume", summary: string): Command {
  return {
    name: `queue ${verb}`,
    summary,
    arguments: [queueArgument],
    options: { key: keyOption, ...operatorOptions, ...storeOptions, ...outputOption },
    run: (invocation) =>
      change(invocation, (store, tenant, audit) =>
        store.intake.pauseQueue(tenant, invocation.arguments.queue!, verb === "pause", audit, invocation.text("key")),
      ),
  };
}

const set: Command = {
  name: "queue set",
  summary: "sets limits of a queue until they are reset; a lower limit evicts no run",
  arguments: [queueArgument],
  options: {
    concurrency: { value: "N|none", help: "runs at once, in all processes" },
    rate: { value: "N/TIME|none", help: "starts per time, such as 600/1m" },
    burst: { value: "N", help: "starts at once, with --rate (default 1)" },
    "key-concurrency": { value: "N|none", help: "runs of one key at once" },
    "key-rate": { value: "N/TIME|none", help: "starts of one key per time" },
    "key-burst": { value: "N", help: "starts of one key at once, with --key-rate (default 1)" },
    ...operatorOptions,
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) => {
    const perKey = limitsOf(invocation, "key-");
    const limits = { ...limitsOf(invocation, ""), ...(Object.keys(perKey).length > 0 && { perKey }) };
    if (Object.keys(limits).length === 0) {
      throw new UsageError("queue set: give at least one of --concurrency, --rate, --key-concurrency, --key-rate");
    }
    return change(invocation, (store, tenant, audit) =>
      store.intake.changeQueue(tenant, invocation.arguments.queue!, limits, audit),
    );
  },
};

const reset: Command = {
  name: "queue reset",
  summary: "restores the limits of the queue's definition",
  arguments: [queueArgument],
  options: { ...operatorOptions, ...storeOptions, ...outputOption },
  run: (invocation) =>
    change(invocation, (store, tenant, audit) => store.intake.resetQueue(tenant, invocation.arguments.queue!, audit)),
};

/** Carries out an operator action and prints the queue as it is then. */
function change(
  invocation: Invocation,
  write: (store: Store, tenant: string, audit: ReturnType<typeof operatorOf>) => Promise<QueueView>,
): Promise<number> {
  const audit = operatorOf(invocation);
  return withApp(invocation, async ({ store, tenant }) => {
    const queue = await write(store, tenant, audit);
    if (wantsJson(invocation)) printJson(invocation, queue);
    else printRows(invocation, [queue], columns(await store.read.now()), "");
    return 0;
  });
}

/** The limits of the queue (prefix "") or of each key (prefix "key-"). */
function limitsOf(invocation: Invocation, prefix: "" | "key-"): Pick<QueueChange, "concurrency" | "rate"> {
  const text = invocation.text(`${prefix}concurrency`);
  const concurrency = text === "none" ? null : wholeOf(`--${prefix}concurrency`, text);
  return defined({ concurrency, rate: rateOf(invocation, prefix) });
}

function rateOf(invocation: Invocation, prefix: "" | "key-"): RateLimit | null | undefined {
  const text = invocation.text(`${prefix}rate`);
  const burst = wholeOf(`--${prefix}burst`, invocation.text(`${prefix}burst`));
  if (burst !== undefined && (text === undefined || text === "none")) {
    throw new UsageError(`--${prefix}burst needs --${prefix}rate`);
  }
  if (text === undefined || text === "none") return text === undefined ? undefined : null;
  const [, limit, per] = /^(\d{1,9})\/(.+)$/.exec(text) ?? [];
  const perMs = durationOption(`${prefix}rate`, per);
  if (perMs === undefined) throw new UsageError(`--${prefix}rate must be N/TIME such as 600/1m, not ${text}`);
  return { limit: Number(limit), perMs: Math.round(perMs), burst: burst ?? 1 };
}

export const queueCommands: readonly Command[] = [
  queues,
  keys,
  explain,
  pauseCommand("pause", "pauses a queue or one key of it: nothing starts, and runs that hold slots continue"),
  pauseCommand("resume", "resumes a paused queue, or one key of it"),
  set,
  reset,
];
