import { describeConfig } from "../../config/describe.ts";
import { loadConfig } from "../../config/load.ts";
import { type Command, UsageError } from "../command.ts";
import { jsonText } from "../output.ts";
import type { Screen } from "../screen.ts";

/** Prints every setting with where it comes from. */
export const config: Command = {
  name: "config",
  summary: "every setting of tape.yaml with its origin",
  options: {
    config: { value: "FILE", help: "the settings to read; default: tape.yaml in this folder" },
    output: { value: "json|text", short: "o", help: "text for people (default), json for programs" },
  },
  run: async (invocation) => print(invocation.text("config"), invocation.text("output"), invocation.screen),
};

function print(file: string | undefined, output: string | undefined, screen: Screen): number {
  if (output !== undefined && output !== "json" && output !== "text")
    throw new UsageError(`-o is json or text, not ${output}`);
  const loaded = loadConfig({ cwd: process.cwd(), env: process.env, ...(file === undefined ? {} : { file }) });
  const settings = describeConfig(loaded);
  if (output === "json") {
    screen.block(jsonText({ file: loaded.file ?? null, settings, warnings: loaded.warnings }));
    return 0;
  }
  const lines = settings.map(({ path, value, origin, variables }) => ({
    said: `${path} = ${JSON.stringify(value)}`,
    from: variables.length === 0 ? origin : `${origin}, with ${variables.join(", ")}`,
  }));
  const width = Math.min(60, Math.max(...lines.map(({ said }) => said.length)));
  for (const { said, from } of lines) screen.line(`${said.padEnd(width)}  ${screen.dim(`# ${from}`)}`);
  for (const warning of loaded.warnings) screen.line(warning);
  return 0;
}
