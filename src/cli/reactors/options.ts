import { parseArgs } from "node:util";
import type { FlagValue } from "../../config/load.ts";

export const usage = `tape-reactors
Runs the reactors of a Tape store beside your services, until a signal stops it.

  tape-reactors --runner-from ./app/agent.ts#buildRunner

  --runner-from FUNCTION      builds the runner: FILE#EXPORT or MODULE:EXPORT, such as app.agent:build_runner
                              (default: agent.runner_factory in tape.yaml)
  --only NAMES                run only these reactors and sinks, such as recovery,sink-billing; sink-*: all sinks
  --announce                  run no reactors: wake the handlers of those with mode: push (tape.push.waker)
  --config FILE               configuration file (default: TAPE_CONFIG, otherwise tape.yaml if it exists)
  --store URL                 overrides tape.store.url
  --set PATH=VALUE            overrides any setting, such as tape.reactors.outbox.batch=10; repeatable
  --help, --version
`;

export interface ReactorsOptions {
  readonly config: string | undefined;
  readonly only: readonly string[] | undefined;
  /** Whether it wakes handlers instead of running reactors. */
  readonly announce: boolean;
  readonly flags: readonly FlagValue[];
}

/** Parses the command line; `fault` says what is wrong with it. */
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
  const addFlag = (path: string, text: string | undefined, flag: string): void => {
    if (text !== undefined) flags.push({ path, text, flag });
  };
  for (const text of values.set ?? []) {
    const [path = "", value] = text.split(/=(.*)/s, 2);
    if (value === undefined) return { fault: `--set must be PATH=VALUE, not ${text}` };
    addFlag(path, value, `--set ${path}`);
  }
  addFlag("agent.runner_factory", values["runner-from"], "--runner-from");
  addFlag("tape.store.url", values.store, "--store");
  const only = values.only?.split(",").map((name) => name.trim());
  if (only?.includes("")) return { fault: "--only must be a list of reactors, separated by commas" };
  const announce = values.announce === true;
  if (announce && only !== undefined) return { fault: "--announce wakes all reactors with mode: push; omit --only" };
  return { config: values.config, only, announce, flags };
}

function parse(argv: readonly string[]) {
  return parseArgs({
    args: [...argv],
    strict: true,
    allowPositionals: false,
    options: {
      "runner-from": { type: "string" },
      only: { type: "string" },
      announce: { type: "boolean" },
      config: { type: "string" },
      store: { type: "string" },
      set: { type: "string", multiple: true },
      help: { type: "boolean", short: "h" },
      version: { type: "boolean", short: "v" },
    },
  });
}
