import { defined } from "../../base/defined.ts";
import type { StreamView } from "../../store/contract/store.ts";
import { outputOption, storeOptions, withApp } from "../app.ts";
import type { Command } from "../command.ts";
import { brief, printJson, printRows, timeOf, wantsJson } from "../output.ts";

const runArgument = { name: "run", help: "run id" } as const;
const maxBriefChars = 200;

const streams: Command = {
  name: "streams",
  summary: "lists the streams of a run: the next offset, bytes, and when they were last written",
  arguments: [runArgument],
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ app }) => {
      const { run } = invocation.arguments as { run: string };
      await app.run(run); // a run that does not exist is an error, not an empty list
      const columns = [
        { title: "STREAM", of: (row: StreamView) => row.name },
        { title: "NEXT", of: (row: StreamView) => String(row.next) },
        { title: "BYTES", of: (row: StreamView) => String(row.bytes) },
        { title: "AT", of: (row: StreamView) => timeOf(row.at) },
      ];
      printRows(invocation, await app.streams.list(run), columns, "the run has streamed nothing");
      return 0;
    }),
};

const follow: Command = {
  name: "stream",
  summary: "prints the chunks of a stream as the run writes them, until the run ends",
  arguments: [runArgument, { name: "name", help: "name of the stream" }],
  options: {
    from: { value: "N", help: "first offset (default: 0)" },
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) =>
    withApp(invocation, async ({ app }) => {
      const { run, name } = invocation.arguments as { run: string; name: string };
      const text = invocation.text("from");
      const from = text === undefined ? undefined : Number(text); // the reader refuses what is no offset
      for await (const chunk of (await app.run(run)).stream(name, defined({ from }))) {
        if (wantsJson(invocation)) printJson(invocation, chunk);
        else if ("rewound" in chunk) invocation.screen.line(`-- part ${chunk.rewound} starts again --`);
        else invocation.screen.line(typeof chunk.value === "string" ? chunk.value : brief(chunk.value, maxBriefChars));
      }
      return 0;
    }),
};

export const streamCommands: readonly Command[] = [streams, follow];
