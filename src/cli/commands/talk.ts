import { defined } from "../../base/defined.ts";
import { gate as gateOf } from "../../sdk/gate.ts";
import { jsonOf, operatorOptions, outputOption, storeOptions, withApp } from "../app.ts";
import type { Command } from "../command.ts";
import { brief, printJson, printRows, timeOf, wantsJson } from "../output.ts";

const runArgument = { name: "run", help: "run id" } as const;
/** Longer than a worker that is starting needs; a run that answers later is asked again with the same key. */
const defaultTimeoutMs = 30_000;
const maxBriefChars = 200;

const ask: Command = {
  name: "ask",
  summary: "sends a request to a run's gate and prints the reply",
  arguments: [runArgument, { name: "gate", help: "name of a gate with reply: true" }],
  options: {
    value: { value: "JSON", help: "value of the request (default: null)" },
    key: { value: "TEXT", help: "idempotency key: the same key gets the same reply" },
    timeout: { value: "DURATION", help: "how long to wait for the reply (default: 30s)" },
    by: operatorOptions.by,
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) =>
    withApp(
      invocation,
      async ({ app, runner }) => {
        const { run, gate: name } = invocation.arguments as { run: string; gate: string };
        const schema = runner.gates?.get(name)?.schema;
        const gate = gateOf(name, { reply: true, ...defined({ schema }) });
        const value = jsonOf("--value", invocation.text("value") ?? "null");
        const [key, by] = [invocation.text("key"), invocation.text("by")];
        const timeout = invocation.duration("timeout") ?? defaultTimeoutMs;
        const reply = await app.ask(run, gate, value, { timeout, ...defined({ key, by }) });
        if (wantsJson(invocation)) printJson(invocation, { reply });
        else invocation.screen.line(brief(reply, maxBriefChars));
        return 0;
      },
      { runner: true },
    ),
};

const published: Command = {
  name: "published",
  summary: "prints what a run has published: the latest value of each name",
  arguments: [runArgument, { name: "name", help: "only this name", optional: true }],
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ app, store, tenant }) => {
      const { run, name } = invocation.arguments as { run: string; name?: string };
      await app.run(run); // a run that does not exist is an error, not an empty list
      const found = await store.read.published(tenant, run, defined({ name }));
      const columns = [
        { title: "NAME", of: (row: (typeof found)[number]) => row.name },
        { title: "AT", of: (row: (typeof found)[number]) => timeOf(row.at) },
        { title: "VALUE", of: (row: (typeof found)[number]) => brief(row.value, maxBriefChars) },
      ];
      printRows(invocation, found, columns, "the run has published nothing under this name");
      return 0;
    }),
};

const watch: Command = {
  name: "watch",
  summary: "prints a value that a run publishes, again whenever it changes, until the run ends",
  arguments: [runArgument, { name: "name", help: "name of the value" }],
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ app }) => {
      const { run, name } = invocation.arguments as { run: string; name: string };
      for await (const value of (await app.run(run)).watch(name)) {
        if (wantsJson(invocation)) printJson(invocation, value);
        else invocation.screen.line(brief(value, maxBriefChars));
      }
      return 0;
    }),
};

export const talkCommands: readonly Command[] = [ask, published, watch];
