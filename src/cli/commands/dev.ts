import { defined } from "../../base/defined.ts";
import { type FlagValue, loadConfig } from "../../config/load.ts";
import { TapeError } from "../../model/errors.ts";
import { type Command, type Invocation, UsageError } from "../command.ts";
import { runProject } from "../dev/project.ts";
import { runTreasuryDemo } from "../dev/treasury-demo.ts";
import { listenAddress } from "./serve.ts";

export const dev: Command = {
  name: "dev",
  summary: "runs server, reactors and your workflows, reloading on change; without tape.yaml runs the payment demo",
  options: {
    config: { value: "FILE", help: "configuration file (default: tape.yaml)" },
    "runner-from": { value: "FUNCTION", help: "overrides agent.runner_factory: FILE#EXPORT or MODULE:EXPORT" },
    listen: { value: "HOST:PORT", help: "overrides tape.server.listen; a taken port is replaced by the next free one" },
    store: { value: "URL", help: "overrides tape.store.url" },
    once: { help: "payment demo only: make one payment, kill its worker, and exit" },
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
  const config = loadConfig({ cwd, env: process.env, flags, ...defined({ file }) });
  const { agent, tape } = config.settings;
  const address = listenAddress(tape.server.listen);
  const once = invocation.given("once");
  const { screen } = invocation;
  if (agent.runner_factory !== undefined) {
    if (once) throw new UsageError("--once belongs to the payment demo, but a runner is configured; omit --once");
    return runProject({ screen, config, address, cwd, file, runnerFrom: invocation.text("runner-from") });
  }
  if (config.file !== undefined || invocation.text("store") !== undefined) {
    throw new TapeError(
      "TAPE_BAD_CONFIG",
      "agent.runner_factory: dev needs your runner, such as ./app/agent.ts#buildRunner",
    );
  }
  return runTreasuryDemo({ screen, address, once });
}
