import { parseArgs } from "node:util";
import type { FlagValue } from "../../config/load.ts";

export const usage = `tape-reactors
Runs the reactors of a Tape store beside your services, until it is told to stop.

  tape-reactors --runner-from ./app/agent.ts#buildRunner

  --runner-from FILE#EXPORT   the function that builds the runner; else agent.runner_factory of tape.yaml
  --only NAMES                run these reactors alone, as in recovery,outbox
  --config FILE               settings; else TAPE_CONFIG, else tape.yaml if there is one
  --store URL                 tape.store.url
  --set PATH=VALUE            any other setting, as in tape.reactors.outbox.batch=10; may be repeated
  --help, --version
`;

export interface ReactorsOptions {
  readonly config: string | undefined;
  readonly only: readonly string[] | undefined;
  readonly flags: readonly FlagValue[];
}

/** Text: what is wrong with the command line. */
export function parseOptions(
  argv: readonly string[],
): ReactorsOptions | "help" | "version" | { readonly fault: string } {
  let values: ReturnType<typeof parse>["values"];
  try {
    ({ values } = parse(argv));
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) };
  }
  if (values.help) return "help";
  if (values.version) return "version";
  const flags: FlagValue[] = [];
  const named = (path: string, text: string | undefined, flag: string): void => {
    if (text !== undefined) flags.push({ path, text, flag });
  };
  for (const text of values.set ?? []) {
    const [path = "", value] = text.split(/=(.*)/s, 2);
    if (value === undefined) return { fault: `--set ${text}: write --set PATH=VALUE` };
    named(path, value, `--set ${path}`);
  }
  named("agent.runner_factory", values["runner-from"], "--runner-from");
  named("tape.store.url", values.store, "--store");
  const only = values.only?.split(",").map((name) => name.trim());
  if (only?.includes("")) return { fault: "--only: name the reactors with commas between them" };
  return { config: values.config, only, flags };
}

function parse(argv: readonly string[]) {
  return parseArgs({
    args: [...argv],
    strict: true,
    allowPositionals: false,
    options: {
      "runner-from": { type: "string" },
      only: { type: "string" },
      config: { type: "string" },
      store: { type: "string" },
      set: { type: "string", multiple: true },
      help: { type: "boolean", short: "h" },
      version: { type: "boolean", short: "v" },
    },
  });
}
