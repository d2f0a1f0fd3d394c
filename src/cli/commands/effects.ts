import { decode } from "../../base/codec.ts";
import { defined } from "../../base/defined.ts";
import type { Duration } from "../../base/duration.ts";
import { runIds } from "../../host/run-ids.ts";
import { effectMachine, obligationMachine } from "../../model/machines.ts";
import type { Resolution } from "../../operator/resolve.ts";
import type { Page } from "../../store/contract/store.ts";
import { effectCursor, gateCursor } from "../../store/list-cursors.ts";
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
import { brief, lasting, printRows } from "../output.ts";
import { complain } from "../screen.ts";
import { effectColumns } from "./inspect.ts";

const listOptions = {
  run: { value: "ID", help: "filter by run" },
  status: { value: "STATUS,…", help: "filter by status" },
  after: { value: "CURSOR", help: "continue after the page that printed this cursor" },
  ...storeOptions,
  ...outputOption,
} as const;

const afterOf = (invocation: Invocation): { after?: string } => defined({ after: invocation.text("after") });

/** A page is bounded in rows and in bytes, so say when it is not the last. On stderr, to keep the output parseable. */
function printNext<T>(page: Page<T>, cursorOf: (row: T) => string): void {
  const last = page.at(-1);
  if (page.more === true && last !== undefined) complain(process.stderr, `more: --after ${cursorOf(last)}`);
}

function listing(name: "effects" | "obligations", summary: string): Command {
  return {
    name,
    summary,
    options: { ...listOptions, newest: { help: "newest first, a page at a time" } },
    run: (invocation) =>
      withApp(invocation, async ({ store, tenant }) => {
        const run = invocation.text("run");
        const newest = invocation.given("newest");
        const known: readonly string[] = name === "effects" ? effectMachine.states : obligationMachine.states;
        const status = choicesOf("--status", invocation.text("status"), known);
        const found = await store.read.effects(tenant, {
          role: name === "effects" ? "effect" : "compensation",
          ...defined({ run, status }),
          ...afterOf(invocation),
          ...(newest && { order: "desc" }),
        });
        const ids = await runIds(store, tenant, found);
        const runColumn = { title: "RUN", of: (row: { readonly run: number }) => ids.get(row.run) ?? "" };
        printRows(invocation, found, [runColumn, ...effectColumns(await store.read.now())], `no ${name} match`);
        if (run === undefined || newest) printNext(found, effectCursor);
        return 0;
      }),
  };
}

const gates: Command = {
  name: "gates",
  summary: "lists gates waiting for a signal",
  options: { run: listOptions.run, after: listOptions.after, ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant }) => {
      const run = invocation.text("run");
      const found = await store.read.gates(tenant, {
        open: true,
        ...afterOf(invocation),
        ...defined({ run }),
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
          { title: "PAYLOAD", of: ({ payload }) => (payload === null ? "" : brief(decode(payload), 80)) },
        ],
        "no open gates",
      );
      printNext(found, gateCursor);
      return 0;
    }),
};

function resolveCommand(target: "effect" | "obligation"): Command {
  return {
    name: `resolve ${target}`,
    summary: `settles an ${target} that is UNKNOWN or STUCK`,
    arguments: [
      { name: "run", help: "run id" },
      { name: "pos", help: "position as shown by inspect, such as 3 or 3.1" },
    ],
    options: {
      as:
        target === "effect"
          ? {
              value: "confirmed|failed|retry|observe|compensate",
              help: "confirmed: it happened; failed: it did not; retry: send it again under the same key; observe: ask the upstream now; compensate: it happened, compensate it",
            }
          : {
              value: "confirmed|retry|observe",
              help: "confirmed: it happened; retry: run it again under the same key; observe: ask the upstream now",
            },
      value: {
        value: "JSON",
        help: target === "effect" ? "its result, with confirmed or compensate" : "its result, with confirmed",
      },
      in: { value: "DURATION", help: "with observe: ask the upstream after this time, such as 1h" },
      ...operatorOptions,
      ...storeOptions,
    },
    run: (invocation) => {
      const [, pos = "", sub] = /^(\d+)(?:\.(\d+))?$/.exec(invocation.arguments.pos!) ?? [];
      if (pos === "")
        throw new UsageError(`<pos> must be a position such as 3 or 3.1, not ${invocation.arguments.pos}`);
      const audit = operatorOf(invocation);
      const resolution = resolutionOf(invocation);
      return withApp(
        invocation,
        async ({ app }) => {
          const run = invocation.arguments.run!;
          const part = wholeOf("<pos>", sub) ?? (target === "effect" ? 0 : 1);
          await app.resolve({ run, pos: Number(pos), sub: part, resolution, ...audit });
          invocation.screen.line(`${run} ${invocation.arguments.pos}: ${resolvedText[resolution.as]}`);
          return 0;
        },
        { runner: true },
      );
    },
  };
}

const resolvedText: Readonly<Record<Resolution["as"], string>> = {
  confirmed: "recorded as confirmed",
  failed: "recorded as failed",
  retry: "retry requested",
  observe: "observation requested",
  compensate: "recorded as confirmed, compensation requested",
};

function resolutionOf(invocation: Invocation): Resolution {
  const as = invocation.text("as");
  const value = invocation.text("value");
  if (invocation.text("in") !== undefined && as !== "observe") throw new UsageError("--in needs --as observe");
  if (as === "confirmed" || as === "compensate") {
    return value === undefined ? { as } : { as, value: jsonOf("--value", value) };
  }
  if (value !== undefined) throw new UsageError("--value needs --as confirmed or --as compensate");
  const after = invocation.text("in");
  if (as === "observe") return after === undefined ? { as } : { as, in: after as Duration };
  if (as === "failed" || as === "retry") return { as };
  throw new UsageError(
    `--as must be confirmed, failed, retry, observe or compensate${as === undefined ? "" : `, not ${as}`}`,
  );
}

export const effectCommands: readonly Command[] = [
  listing("effects", "lists effects and their status"),
  listing("obligations", "lists compensations owed"),
  gates,
  resolveCommand("effect"),
  resolveCommand("obligation"),
];
