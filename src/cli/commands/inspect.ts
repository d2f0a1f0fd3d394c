import { systemClock } from "../../base/clock.ts";
import { decode } from "../../base/codec.ts";
import { defined } from "../../base/defined.ts";
import { shellWord } from "../../engine/core/report.ts";
import { explainQueue } from "../../engine/served.ts";
import type { Tape } from "../../host/tape.ts";
import type { TermView } from "../../model/lease.ts";
import { notFound } from "../../model/not-found.ts";
import type { JournalRecord } from "../../model/records.ts";
import type { EffectRow } from "../../model/rows.ts";
import type { FeedRecord, RunView } from "../../store/contract/store.ts";
import { feedPages } from "../../store/read-all.ts";
import { outputOption, storeOptions, wholeOf, withApp } from "../app.ts";
import type { Command, Invocation } from "../command.ts";
import { brief, type Column, jsonText, lasting, printJson, tableOf, timeOf, wantsJson } from "../output.ts";
import { inspectArchived } from "./retention.ts";
import { waitsOf } from "./waiting.ts";

/** What this run was charged for calls that were lost with their terms; included in the amount spent. */
function presumedIn(journal: readonly JournalRecord[], unit: string): number {
  const amounts = journal.flatMap((record) => (record.kind === "budget.presumed" ? [record.data.amounts] : []));
  return amounts.reduce((sum, of) => sum + (Object.hasOwn(of, unit) ? of[unit]! : 0), 0);
}

/** Of a run that has continued as new: its current generation, and of its gates those that are open. */
async function currentGeneration(app: Pick<Tape, "journal">, { id, lease }: RunView) {
  const { begins = 1 } = lease;
  const journal: JournalRecord[] = await Array.fromAsync(app.journal(id, { from: begins }));
  const [first] = journal;
  if (first?.kind !== "run.continued") return { journal, positions: {}, gates: {}, shown: undefined };
  const { generation, pos: from } = first.data;
  const earlier = `durable-tape tail ${shellWord(id)} --from 1`;
  const shown = `generation ${generation}, since record ${begins}; earlier records: ${earlier}`;
  return { journal, positions: { from }, gates: { open: true }, shown };
}

const inspectStored: Command["run"] = (invocation) =>
  withApp(invocation, async ({ app, store, tenant }) => {
    const id = invocation.arguments.run!;
    const run = await app.runs.get(id);
    if (run === undefined) throw notFound("run", id);
    const { journal, ...current } = await currentGeneration(app, run);
    const [terms, effects, obligations, gates, timers, budgets, position] = await Promise.all([
      store.read.terms(tenant, { run: id }),
      store.read.effects(tenant, { run: id, role: "effect", ...current.positions }),
      store.read.effects(tenant, { run: id, role: "compensation", ...current.positions }),
      store.read.gates(tenant, { run: id, ...current.gates }),
      store.read.timers(tenant, { run: id }),
      store.read.budgets(tenant, id),
      explainQueue(store, tenant, id),
    ]);
    const now = await store.read.now();
    const open = { journal, gates, timers, effects: [...effects, ...obligations], position };
    const waitingFor = run.endedAt === null ? waitsOf(run, open, now) : [];
    if (wantsJson(invocation)) {
      const parts = { journal, terms, effects, obligations, gates, timers, budgets };
      printJson(invocation, { run, waitingFor, ...(position !== undefined && { queue: position }), ...parts });
      return 0;
    }
    const { screen } = invocation;
    screen.line(`${screen.bold(id)}  ${run.status}  ${run.workflow}`);
    screen.line(`started ${timeOf(run.createdAt)}, ${lasting((run.endedAt ?? now) - run.createdAt)}`);
    if (current.shown !== undefined) screen.line(current.shown);
    if (run.lease.owner !== null) {
      const { label, token, remainingMs } = run.lease;
      screen.line(`held by ${label}, token ${token}, expires in ${lasting(remainingMs)} unless renewed`);
    }
    const { error, outcome } = run;
    if (run.erased) screen.line("its payloads were erased");
    else if (error !== undefined) screen.line(screen.bad(`error ${brief(outcome, 400)}`));
    else if (run.endedAt !== null) screen.line(`outcome ${brief(outcome, 400)}`);
    if (run.endedAt === null) for (const line of waitingFor) screen.line(line);
    section(invocation, "journal", journal, journalColumns);
    section(invocation, "terms", terms, termColumns);
    section(invocation, "effects", effects, effectColumns(now));
    section(invocation, "obligations", obligations, effectColumns(now));
    section(invocation, "gates", gates, [
      { title: "POS", right: true, of: ({ pos }) => pos },
      { title: "GATE", of: ({ name }) => name },
      { title: "STATUS", of: ({ status }) => status },
      { title: "PAYLOAD", of: ({ payload }) => (payload === null ? "" : brief(decode(payload))) },
    ]);
    section(invocation, "timers", timers, [
      { title: "POS", right: true, of: ({ pos }) => pos },
      { title: "PURPOSE", of: ({ purpose }) => purpose },
      { title: "STATUS", of: ({ status }) => status },
      { title: "DUE", of: ({ dueAt }) => timeOf(dueAt) },
    ]);
    section(invocation, "budgets (millionths)", budgets, [
      { title: "UNIT", of: ({ unit }) => unit },
      { title: "CAP", right: true, of: ({ cap }) => cap ?? "none" },
      { title: "RESERVED", right: true, of: ({ reserved }) => reserved },
      { title: "SPENT", right: true, of: ({ spent }) => spent },
      { title: "PRESUMED HERE", right: true, of: ({ unit }) => presumedIn(journal, unit) },
    ]);
    const inDoubt = open.effects.filter(({ status }) => status === "UNKNOWN" || status === "STUCK");
    for (const { pos, sub, role, status } of inDoubt) {
      const kind = role === "effect" ? "effect" : "obligation";
      const position = sub === 0 ? `${pos}` : `${pos}.${sub}`;
      const as = role === "effect" ? "confirmed|failed|retry" : "confirmed|retry";
      screen.line();
      screen.line(`${screen.bad(`${kind} ${position} is ${status}`)}: find out whether it happened, then`);
      screen.line(`  durable-tape resolve ${kind} ${shellWord(id)} ${position} --as ${as} --reason "…"`);
    }
    return 0;
  });

const inspect: Command = {
  name: "inspect",
  summary: "shows a run: journal, term history, open and in-doubt work",
  arguments: [{ name: "run", help: "run id" }],
  options: { archive: { help: "a run that was archived and deleted" }, ...storeOptions, ...outputOption },
  run: (invocation) =>
    invocation.given("archive")
      ? withApp(invocation, ({ store, tenant }) => inspectArchived(invocation, store, tenant))
      : inspectStored(invocation),
};

const tail: Command = {
  name: "tail",
  summary: "prints journal records of a run or of the whole store",
  arguments: [{ name: "run", help: "run id (default: all runs)", optional: true }],
  options: {
    follow: { short: "f", help: "keep printing new records" },
    from: { value: "SEQ|CURSOR", help: "first record: a seq of the run, or a cursor of the feed" },
    limit: { value: "N", help: "without --follow: number of latest records (default 50)" },
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) =>
    withApp(invocation, async ({ app, store, tenant }) => {
      const run = invocation.arguments.run;
      const limit = wholeOf("--limit", invocation.text("limit")) ?? 50;
      const print = (record: JournalRecord): void => {
        if (wantsJson(invocation)) invocation.screen.line(jsonText(record, 0));
        else invocation.screen.line(lineOf(record));
      };
      if (run !== undefined) {
        const found = await app.runs.get(run);
        if (found === undefined) throw notFound("run", run);
        let from = wholeOf("--from", invocation.text("from")) ?? found.lease.begins ?? 1;
        const all: JournalRecord[] = [];
        for await (const record of app.journal(run, { from })) all.push(record);
        const printed = invocation.given("follow") || invocation.text("from") !== undefined ? all : all.slice(-limit);
        for (const record of printed) print(record);
        from = (all.at(-1)?.seq ?? from - 1) + 1;
        while (invocation.given("follow") && (await app.runs.get(run))?.endedAt === null) {
          await systemClock.sleep(followMs);
          for await (const record of app.journal(run, { from })) {
            print(record);
            from = record.seq + 1;
          }
        }
        return 0;
      }
      const from = invocation.text("from");
      if (invocation.given("follow")) {
        const stopped = new AbortController();
        process.once("SIGINT", () => stopped.abort());
        for await (const record of app.feed({ ...defined({ from }), signal: stopped.signal })) print(record);
        return 0;
      }
      const last: FeedRecord[] = [];
      for await (const records of feedPages(store.read, { from, tenant })) {
        last.push(...records);
        last.splice(0, Math.max(0, last.length - limit));
      }
      for (const record of last) print(record);
      return 0;
    }),
};

export const inspectCommands: readonly Command[] = [inspect, tail];

/** Poll interval of a run's journal: an operator reads no faster. */
const followMs = 200;

const journalColumns: readonly Column<JournalRecord>[] = [
  { title: "SEQ", right: true, of: ({ seq }) => seq },
  { title: "TOKEN", right: true, of: ({ token }) => String(token) },
  { title: "AT", of: ({ at }) => timeOf(at) },
  { title: "KIND", of: ({ kind }) => kind },
  { title: "DATA", of: ({ data }) => brief(data, 90) },
];

export const termColumns: readonly Column<TermView>[] = [
  { title: "TOKEN", right: true, of: ({ token }) => String(token) },
  { title: "OWNER", of: ({ label }) => label },
  { title: "REACTOR", of: ({ reactor }) => reactor },
  { title: "STARTED", of: ({ startedAt }) => timeOf(startedAt) },
  { title: "START REASON", of: ({ startReason }) => startReason },
  { title: "ENDED", of: ({ endedAt }) => (endedAt === undefined ? "" : timeOf(endedAt)) },
  { title: "END REASON", of: ({ endReason }) => endReason ?? "" },
  { title: "OPERATOR", of: ({ by, auditReason }) => (auditReason === undefined ? "" : `${by}: ${auditReason}`) },
];

export const effectColumns = (now: number): readonly Column<EffectRow>[] => [
  { title: "POS", right: true, of: ({ pos, sub }) => (sub === 0 ? `${pos}` : `${pos}.${sub}`) },
  { title: "NAME", of: ({ name }) => name ?? "(no compensate)" },
  { title: "STATUS", of: ({ status }) => status },
  { title: "SINCE", right: true, of: ({ changedAt }) => lasting(now - changedAt) },
  { title: "ATTEMPT", right: true, of: ({ attempt }) => attempt },
  { title: "KEY", of: ({ businessKey, key }) => businessKey ?? key },
  { title: "ARGUMENTS", of: ({ args }) => brief(decode(args), 50) },
];

function section<T>(invocation: Invocation, title: string, rows: readonly T[], columns: readonly Column<T>[]): void {
  if (rows.length === 0) return;
  invocation.screen.line();
  invocation.screen.line(invocation.screen.bold(title));
  for (const line of tableOf(rows, columns)) invocation.screen.line(`  ${line}`);
}

function lineOf(record: JournalRecord): string {
  const { at, journal, seq, token, kind, data } = record;
  return `${timeOf(at)}  ${journal}/${seq} #${token}  ${kind}  ${brief(data, 120)}`;
}
