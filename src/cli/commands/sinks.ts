import type { Sinks, SinkView } from "../../host/sinks.ts";
import { type DeadLetter, type LetterState, letterStates } from "../../model/dead-letter.ts";
import { problemsOf } from "../../model/sink-state.ts";
import type { AuditInfo } from "../../store/contract/store.ts";
import { operatorOf, operatorOptions, outputOption, storeOptions, wholeOf, withApp } from "../app.ts";
import { type Command, type Invocation, UsageError } from "../command.ts";
import { type Column, lasting, plural, printJson, printRows, wantsJson } from "../output.ts";
import { main as runReactors } from "../reactors/main.ts";

const sinkArgument = { name: "sink", help: "sink name" } as const;
const eventOption = {
  value: "EVENT",
  many: true,
  help: "only this event; repeatable (default: all open ones)",
} as const;

const columns: readonly Column<SinkView>[] = [
  { title: "SINK", of: ({ name }) => name },
  { title: "STATE", of: ({ state }) => state },
  { title: "LAG", right: true, of: ({ lagMs }) => (lagMs === 0 ? "" : lasting(lagMs)) },
  { title: "DEAD LETTERS", right: true, of: ({ openLetters }) => openLetters || "" },
  { title: "HOLDER", of: ({ holder }) => holder ?? "" },
  { title: "NOTE", of: ({ paused, note }) => (paused === undefined ? (note ?? "") : `${paused.by}: ${paused.reason}`) },
];

const letterColumns: readonly Column<DeadLetter>[] = [
  { title: "EVENT", of: ({ event }) => event },
  { title: "KIND", of: ({ kind }) => kind },
  { title: "ATTEMPTS", right: true, of: ({ attempts }) => attempts },
  { title: "CODE", of: ({ code }) => code },
  { title: "ERROR", of: ({ error }) => error },
];

const list: Command = {
  name: "sinks",
  summary: "lists sinks: state, lag, open dead letters, holder, last report",
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ app }) => {
      const found = await app.sinks.list();
      printRows(invocation, found, columns, "no sinks; set one in tape.events.sinks");
      return found.some((sink) => problemsOf(sink).length > 0) ? 3 : 0;
    }),
};

const explain: Command = {
  name: "sink explain",
  summary: "explains where a sink is and what it waits for",
  arguments: [sinkArgument],
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ app }) => {
      const view = await app.sinks.get(invocation.arguments.sink!);
      if (wantsJson(invocation)) printJson(invocation, view);
      else for (const line of linesOf(view)) invocation.screen.line(line);
      return 0;
    }),
};

function linesOf(view: SinkView): string[] {
  const { name, state, holder, note, lagMs, passedAt, paused, openLetters, keptRuns } = view;
  const passed = passedAt === undefined ? "it has passed nothing" : `passed up to ${new Date(passedAt).toISOString()}`;
  return [
    `${name}: ${state}${holder === undefined ? "" : `, held by ${holder}`}; ${passed}`,
    lagMs === 0 ? "nothing waits for it" : `the first record that it has not passed is ${lasting(lagMs)} old`,
    ...(note === undefined ? [] : [`last report: ${note}`]),
    ...(paused === undefined ? [] : [`paused by ${paused.by}: ${paused.reason}; next: sink resume ${name} --reason …`]),
    ...(openLetters === 0 ? [] : [`${plural(openLetters, "open dead letter")}; next: sink dead-letters ${name}`]),
    ...(keptRuns === 0 ? [] : [`pruning keeps ${plural(keptRuns, "ended run")} for it, until it has passed them`]),
  ];
}

const letters: Command = {
  name: "sink dead-letters",
  summary: "lists events that a sink refused, oldest first",
  arguments: [sinkArgument],
  options: {
    state: { value: "STATE", help: `one of ${letterStates.join(", ")} (default OPEN)` },
    limit: { value: "N", help: "maximum number of rows (default 50)" },
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) => {
    const state = (invocation.text("state") ?? "OPEN").toUpperCase() as LetterState;
    if (!letterStates.includes(state)) throw new UsageError(`--state must be one of ${letterStates.join(", ")}`);
    return withApp(invocation, async ({ app }) => {
      const limit = wholeOf("--limit", invocation.text("limit")) ?? 50;
      const found = await app.sinks.deadLetters(invocation.arguments.sink!, { state, limit });
      printRows(invocation, found, letterColumns, "no dead letters");
      return 0;
    });
  },
};

function settling(verb: "replay" | "discard", summary: string): Command {
  return {
    name: `sink ${verb}`,
    summary,
    arguments: [sinkArgument],
    options: { event: eventOption, ...operatorOptions, ...storeOptions },
    run: (invocation) => {
      const audit = operatorOf(invocation);
      return withApp(invocation, async ({ app }) => {
        const events = invocation.all("event");
        const count = await app.sinks[verb](
          invocation.arguments.sink!,
          audit,
          events.length === 0 ? undefined : events,
        );
        invocation.screen.line(
          `${plural(count, "dead letter")} ${verb === "replay" ? "will be sent again" : "discarded"}`,
        );
        return 0;
      });
    },
  };
}

function changing(
  verb: string,
  summary: string,
  change: (sinks: Sinks, sink: string, audit: AuditInfo, invocation: Invocation) => Promise<void>,
  options: Command["options"] = {},
): Command {
  return {
    name: `sink ${verb}`,
    summary,
    arguments: [sinkArgument],
    options: { ...options, ...operatorOptions, ...storeOptions },
    run: (invocation) => {
      const audit = operatorOf(invocation);
      return withApp(invocation, async ({ app }) => {
        await change(app.sinks, invocation.arguments.sink!, audit, invocation);
        invocation.screen.line(`sink ${invocation.arguments.sink}: ${verb} done`);
        return 0;
      });
    },
  };
}

const rewind = changing(
  "rewind",
  "has a sink continue before an event; what follows is sent again",
  (sinks, sink, audit, invocation) => {
    const to = invocation.text("to");
    if (to === undefined) throw new UsageError("sink rewind: --to EVENT, --to start or --to now");
    return sinks.rewind(sink, to, audit);
  },
  { to: { value: "EVENT", help: "id of an event, start, or now" } },
);

/** `tape-reactors` with the sinks alone. */
const fanout: Command = {
  name: "fanout",
  summary: "sends events to the sinks of tape.yaml, until a signal stops it",
  arguments: [{ name: "sinks", help: "names, separated by commas (default: all)", optional: true }],
  options: {
    config: { value: "FILE", help: "configuration file (default: tape.yaml)" },
    store: { value: "URL", help: "overrides tape.store.url" },
  },
  run: (invocation) => {
    const names = invocation.arguments.sinks?.split(",").map((name) => name.trim()) ?? ["*"];
    const option = (name: string): string[] => {
      const value = invocation.text(name);
      return value === undefined ? [] : [`--${name}`, value];
    };
    return runReactors([
      "--only",
      names.map((name) => `sink-${name}`).join(","),
      ...option("config"),
      ...option("store"),
    ]);
  },
};

export const sinkCommands: readonly Command[] = [
  list,
  explain,
  letters,
  settling("replay", "has dead letters sent again, with the same ids"),
  settling("discard", "discards dead letters: their events are not sent"),
  changing("pause", "pauses a sink: nothing is sent until it is resumed", (sinks, sink, audit) =>
    sinks.pause(sink, audit),
  ),
  changing("resume", "resumes a paused sink from its checkpoint", (sinks, sink, audit) => sinks.resume(sink, audit)),
  rewind,
  changing("forget", "removes the checkpoint of a sink that is no longer used", (sinks, sink, audit) =>
    sinks.forget(sink, audit),
  ),
  fanout,
];
