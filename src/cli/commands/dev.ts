import { type FlagValue, loadConfig } from "../../config/load.ts";
import { TapeError } from "../../model/errors.ts";
import { type Command, type Invocation, UsageError } from "../command.ts";
import { runProject } from "../dev/project.ts";
import { runTreasuryDemo } from "../dev/treasury-demo.ts";
import { placeOf } from "./serve.ts";

export const dev: Command = {
  name: "dev",
  summary: "server, reactors and your runner in one, reloaded on change; without a tape.yaml it plays a payment",
  options: {
    config: { value: "FILE", help: "the settings to read; default: tape.yaml in this folder" },
    "runner-from": { value: "FILE#EXPORT", help: "agent.runner_factory" },
    listen: { value: "HOST:PORT", help: "tape.server.listen; the next free port where that one is taken" },
    store: { value: "URL", help: "tape.store.url" },
    once: { help: "without a runner of yours: plays one payment with a kill, and ends" },
  },
  run,
};

const paths = { "runner-from": "agent.runner_factory", listen: "tape.server.listen", store: "tape.store.url" } as const;

async function run(invocation: Invocation): Promise<number> {
  const cwd = process.cwd();
  const file = invocation.text("config");
  const flags = Object.entries(paths).flatMap(([option, path]): FlagValue[] => {
    const text = invocation.text(option);
    return text === undefined ? [] : [{ path, text, flag: `--${option}` }];
  });
  const config = loadConfig({ cwd, env: process.env, flags, ...(file === undefined ? {} : { file }) });
  const { agent, tape } = config.settings;
  const place = placeOf(tape.server.listen);
  const once = invocation.given("once");
  const { screen } = invocation;
  if (agent.runner_factory !== undefined) {
    if (once) throw new UsageError("dev --once plays the built-in payment; you have a runner: leave --once out");
    return runProject({ screen, config, place, cwd, file, runnerFrom: invocation.text("runner-from") });
  }
  if (config.file !== undefined || invocation.text("store") !== undefined) {
    throw new TapeError(
      "TAPE_BAD_CONFIG",
      "agent.runner_factory: dev needs your runner, as in ./app/agent.ts#buildRunner",
    );
  }
  return runTreasuryDemo({ screen, place, once });
}
