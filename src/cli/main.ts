import { suggest } from "../base/suggest.ts";
import { isTapeError } from "../model/errors.ts";
import { configCommand } from "./config.ts";
import { crashResumeDemo } from "./demo/crash-resume.ts";
import { zombieDemo } from "./demo/zombie.ts";
import { type Screen, screenOn } from "./screen.ts";
import { version } from "./version.ts";

const usage = `durable-tape ${version}
Durable execution for agents and services that act on the world.

  durable-tape demo crash-resume    a process dies after a wire, before its record: the next one does not wire again
  durable-tape demo zombie          two processes, one lease: a paused owner wakes up and cannot write
  durable-tape config               every setting of tape.yaml with its origin; --config FILE, -o json
  durable-tape --help               this page
  durable-tape --version
`;

const commands = ["config", "demo", "--help", "--version"];

const stories: ReadonlyMap<string, (screen: Screen) => Promise<number>> = new Map([
  ["crash-resume", crashResumeDemo],
  ["zombie", zombieDemo],
]);

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
    if (command === "config") {
      const fault = configCommand(argv.slice(1), screen);
      return fault === undefined ? 0 : misused(fault);
    }
    if (command === "demo") {
      const story = rest.length === 0 && topic !== undefined ? stories.get(topic) : undefined;
      if (story !== undefined) return await story(screen);
      const asked = topic === undefined ? "" : `, not ${[topic, ...rest].join(" ")}`;
      return misused(`demo knows the stories ${[...stories.keys()].join(" and ")}${asked}`);
    }
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
