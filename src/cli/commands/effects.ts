import { decode } from "../../base/codec.ts";
import { runIds } from "../../host/run-ids.ts";
import { effectMachine, obligationMachine } from "../../model/machines.ts";
import type { Resolution } from "../../operator/resolve.ts";
import { effectCursor, gateCursor } from "../../store/contract/filters.ts";
import type { Page } from "../../store/contract/store.ts";
import { jsonOf, operatorOf, operatorOptions, outputOption, storeOptions, wholeOf, withApp, wordsOf } from "../app.ts";
import { type Command, type Invocation, UsageError } from "../command.ts";
import { brief, lasting, printRows } from "../output.ts";
import { complain } from "../screen.ts";
import { effectColumns } from "./inspect.ts";

const listOptions = {
  run: { value: "ID", help: "only this run's" },
  status: { value: "STATUS,…", help: "only these" },
  after: { value: "CURSOR", help: "continue behind the page whose last line names it" },
  ...storeOptions,
  ...outputOption,
} as const;

const afterOf = (invocation: Invocation): { after?: string } => {
  const after = invocation.text("after");
  return after === undefined ? {} : { after };
};

/** A page is bounded in rows and in bytes: whoever reads it must know that it is not all. On stderr, beside any output. */
function printNext<T>(page: Page<T>, cursorOf: (row: T) => string): void {
  const last = page.at(-1);
  if (page.more === true && last !== undefined) complain(process.stderr, `there are more: --after ${cursorOf(last)}`);
}

function listing(name: "effects" | "obligations", summary: string): Command {
  return {
    name,
    summary,
    options: listOptions,
    run: (invocation) =>
      withApp(invocation, async ({ store, tenant }) => {
        const run = invocation.text("run");
        const known: readonly string[] = name === "effects" ? effectMachine.states : obligationMachine.states;
        const status = wordsOf("--status", invocation.text("status"), known);
        const found = await store.read.effects(tenant, {
          role: name === "effects" ? "effect" : "compensation",
          ...(run === undefined ? {} : { run }),
          ...(status === undefined ? {} : { status }),
          ...afterOf(invocation),
        });
        const ids = await runIds(store, tenant, found);
        const runColumn = { title: "RUN", of: (row: { readonly run: number }) => ids.get(row.run) ?? "" };
        printRows(
          invocation,
          found,
          [runColumn, ...effectColumns(await store.read.now())],
          `there are no such ${name}`,
        );
        if (run === undefined) printNext(found, effectCursor);
        return 0;
      }),
  };
}

const gates: Command = {
  name: "gates",
  summary: "lists gates that wait for somebody's decision",
  options: { run: listOptions.run, after: listOptions.after, ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant }) => {
      const run = invocation.text("run");
      const found = await store.read.gates(tenant, {
        open: true,
        ...afterOf(invocation),
        ...(run === undefined ? {} : { run }),
      });
      const ids = await runIds(store, tenant, found);
      const now = await store.read.now();
      printRows(
        invocation,
        found.map((row) => ({ ...row, id: ids.get(row.run) ?? "" })),
        [
          { title: "RUN", of: ({ id }) => id },
          { title: "GATE", of: ({ name }) => name },
          { title: "WAITS", right: true, of: ({ openedAt }) => lasting(now - openedAt) },
          { title: "BINDS", of: ({ binds }) => binds ?? "" },
          { title: "SHOWS", of: ({ payload }) => (payload === null ? "" : brief(decode(payload), 80)) },
        ],
        "nobody waits at a gate",
      );
      printNext(found, gateCursor);
      return 0;
    }),
};

function resolving(what: "effect" | "obligation"): Command {
  return {
    name: `resolve ${what}`,
    summary:
      what === "effect"
        ? "settles an act of which nobody knows whether it happened"
        : "settles an undoing of which nobody knows whether it happened",
    arguments: [
      { name: "run", help: "the run's id" },
      { name: "pos", help: "the position that inspect shows, as in 3 or 3.1" },
    ],
    options: {
      as:
        what === "effect"
          ? {
              value: "confirmed|failed|retry|observe|compensate",
              help: "what was found out; retry: have it done again under its key; observe: have the other side looked at now; compensate: it happened, have it undone",
            }
          : {
              value: "confirmed|retry|observe",
              help: "what was found out; retry: have it done again under its key; observe: have the other side looked at now",
            },
      value: {
        value: "JSON",
        help: what === "effect" ? "with confirmed or compensate: what it answered" : "with confirmed: what it answered",
      },
      ...operatorOptions,
      ...storeOptions,
    },
    run: (invocation) => {
      const [, pos = "", sub] = /^(\d+)(?:\.(\d+))?$/.exec(invocation.arguments.pos!) ?? [];
      if (pos === "") throw new UsageError(`<pos> is a position as in 3 or 3.1, not ${invocation.arguments.pos}`);
      const audit = operatorOf(invocation);
      const resolution = resolutionOf(invocation);
      return withApp(
        invocation,
        async ({ app }) => {
          const run = invocation.arguments.run!;
          const part = wholeOf("<pos>", sub) ?? (what === "effect" ? 0 : 1);
          await app.resolve({ run, pos: Number(pos), sub: part, resolution, ...audit });
          const said =
            resolution.as === "observe"
              ? "somebody looks at once"
              : resolution.as === "compensate"
                ? "it is to be undone"
                : undefined;
          invocation.screen.line(`${run} ${invocation.arguments.pos}: ${said ?? `recorded as ${resolution.as}`}`);
          return 0;
        },
        { runner: true },
      );
    },
  };
}

function resolutionOf(invocation: Invocation): Resolution {
  const as = invocation.text("as");
  const value = invocation.text("value");
  if (as === "confirmed" || as === "compensate") {
    return value === undefined ? { as } : { as, value: jsonOf("--value", value) };
  }
  if (value !== undefined) throw new UsageError("--value goes with --as confirmed or compensate");
  if (as === "failed" || as === "retry" || as === "observe") return { as };
  throw new UsageError(
    `--as is confirmed, failed, retry, observe or compensate${as === undefined ? "" : `, not ${as}`}`,
  );
}

export const effectCommands: readonly Command[] = [
  listing("effects", "lists acts on the world and how each stands"),
  listing("obligations", "lists what is owed if a run does not end well"),
  gates,
  resolving("effect"),
  resolving("obligation"),
];
