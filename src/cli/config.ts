import { parseArgs } from "node:util";
import { describeConfig } from "../config/describe.ts";
import { loadConfig } from "../config/load.ts";
import type { Screen } from "./screen.ts";

/** Prints every setting with where it comes from. Text: what is wrong with the command line. */
export function configCommand(argv: readonly string[], screen: Screen): string | undefined {
  let file: string | undefined;
  let output: string | undefined;
  try {
    const options = { config: { type: "string" }, output: { type: "string", short: "o" } } as const;
    ({ config: file, output } = parseArgs({ args: [...argv], options, strict: true }).values);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  if (output !== undefined && output !== "json" && output !== "text") return `-o is json or text, not ${output}`;
  const loaded = loadConfig({ cwd: process.cwd(), env: process.env, ...(file === undefined ? {} : { file }) });
  const settings = describeConfig(loaded);
  if (output === "json") {
    screen.line(JSON.stringify({ file: loaded.file ?? null, settings, warnings: loaded.warnings }, null, 2));
    return undefined;
  }
  const lines = settings.map(({ path, value, origin, variables }) => ({
    said: `${path} = ${JSON.stringify(value)}`,
    from: variables.length === 0 ? origin : `${origin}, with ${variables.join(", ")}`,
  }));
  const width = Math.min(60, Math.max(...lines.map(({ said }) => said.length)));
  for (const { said, from } of lines) screen.line(`${said.padEnd(width)}  ${screen.dim(`# ${from}`)}`);
  for (const warning of loaded.warnings) screen.line(warning);
  return undefined;
}
