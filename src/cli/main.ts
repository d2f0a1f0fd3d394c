import { suggest } from "../base/suggest.ts";
import { isTapeError } from "../model/errors.ts";
import { zombieDemo } from "./demo/zombie.ts";
import { screenOn } from "./screen.ts";
import { version } from "./version.ts";

const usage = `durable-tape ${version}
Durable execution for agents and services that act on the world.

  durable-tape demo zombie    two processes, one lease: a paused owner wakes up and cannot write
  durable-tape --help         this page
  durable-tape --version
`;

const commands = ["demo", "--help", "--version"];

/** Exit codes: 0 fine, 1 refused or failed, 2 usage. */
export async function main(argv: readonly string[]): Promise<number> {
  const screen = screenOn(process.stdout);
  const [command = "--help", topic, ...rest] = argv;
  try {
    if (command === "--version" || command === "-v") {
      screen.line(version);
      return 0;
    }
    if (command === "--help" || command === "-h" || command === "help") {
      screen.line(usage);
      return 0;
    }
    if (command === "demo" && topic === "zombie" && rest.length === 0) return await zombieDemo(screen);
    if (command === "demo")
      return misused(`demo knows one story: zombie${topic === undefined ? "" : `, not ${[topic, ...rest].join(" ")}`}`);
    const near = suggest(command, commands);
    return misused(`there is no command ${command}${near === undefined ? "" : `; did you mean ${near}?`}`);
  } catch (error) {
    if (!isTapeError(error)) throw error;
    process.stderr.write(`${error.message}\n${error.next}\n`);
    return 1;
  }
}

function misused(message: string): number {
  process.stderr.write(`${message}\nRun durable-tape --help to see what there is.\n`);
  return 2;
}
