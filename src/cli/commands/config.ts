import { defined } from "../../base/defined.ts";
import { describeConfig } from "../../config/describe.ts";
import { loadConfig } from "../../config/load.ts";
import { type Command, UsageError } from "../command.ts";
import { jsonText } from "../output.ts";
import type { Screen } from "../screen.ts";

/** Prints every setting with its origin. */
export const config: Command = {
  name: "config",
  summary: "prints every setting with its value and origin",
  options: {
    config: { value: "FILE", help: "configuration file (default: tape.yaml)" },
    output: { value: "text|json", short: "o", help: "output format (default: text)" },
  },
  run: async (invocation) => print(invocation.text("config"), invocation.text("output"), invocation.screen),
};

function print(file: string | undefined, output: string | undefined, screen: Screen): number {
  if (output !== undefined && output !== "json" && output !== "text")
    throw new UsageError(`-o must be text or json, not ${output}`);
  const loaded = loadConfig({ cwd: process.cwd(), env: process.env, ...defined({ file }) });
  const settings = describeConfig(loaded);
  if (output === "json") {
    screen.block(jsonText({ file: loaded.file ?? null, settings, warnings: loaded.warnings }));
    return 0;
  }
  const lines = settings.map(({ path, value, origin, variables }) => ({
    setting: `${path} = ${JSON.stringify(value)}`,
    from: variables.length === 0 ? origin : `${origin}, with ${variables.join(", ")}`,
  }));
  const width = Math.min(60, Math.max(...lines.map(({ setting }) => setting.length)));
  for (const { setting, from } of lines) screen.line(`${setting.padEnd(width)}  ${screen.dim(`# ${from}`)}`);
  for (const warning of loaded.warnings) screen.line(warning);
  return 0;
}
