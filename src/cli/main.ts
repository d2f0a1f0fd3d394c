import { reasonOf } from "../base/reason.ts";
import { suggest } from "../base/suggest.ts";
import { isTapeError } from "../model/errors.ts";
import { type Command, helpOf, parse, UsageError } from "./command.ts";
import { commands } from "./commands.ts";
import { complain, type Screen, screenOn } from "./screen.ts";
import { version } from "./version.ts";

/** Exit codes: 0 success, 1 failure, 2 usage error, 3 something needs attention (status and doctor). */
export async function main(argv: readonly string[]): Promise<number> {
  const screen = screenOn(process.stdout);
  try {
    return await dispatch(argv, screen);
  } catch (error) {
    if (error instanceof UsageError) {
      complain(
        process.stderr,
        `TAPE_BAD_INPUT: ${error.message}`,
        "Run durable-tape --help for all commands and options.",
      );
      return 2;
    }
    if (!isTapeError(error)) throw error;
    complain(process.stderr, reasonOf(error), error.next);
    return 1;
  }
}

async function dispatch(argv: readonly string[], screen: Screen): Promise<number> {
  const [first = "--help"] = argv;
  if (first === "--version" || first === "-v") {
    screen.line(version);
    return 0;
  }
  const helpFirst = first === "--help" || first === "-h" || first === "help";
  const words = helpFirst ? argv.slice(1) : argv;
  const command = find(words);
  if (helpFirst && words.length === 0) {
    screen.block(usage());
    return 0;
  }
  const wantsHelp = helpFirst || words.includes("--help") || words.includes("-h");
  if (command === undefined) return groupHelp(words, screen, wantsHelp);
  const rest = words.slice(command.name.split(" ").length);
  if (wantsHelp) {
    screen.block(helpOf(command));
    return 0;
  }
  return command.run(parse(command, rest, screen));
}

/** Tries two words first: in "lease ls", "ls" is part of the name, not an argument. */
function find(words: readonly string[]): Command | undefined {
  const named = (name: string) => commands.find((command) => command.name === name);
  return named(words.slice(0, 2).join(" ")) ?? named(words[0] ?? "");
}

/** Lists the commands under the first word of two-word commands, or explains which of them exist. */
function groupHelp(words: readonly string[], screen: Screen, wantsHelp: boolean): number {
  const [first = "", second] = words;
  const group = commands.filter(({ name }) => name.startsWith(`${first} `));
  if (group.length === 0) throw unknown(first);
  if (wantsHelp) {
    screen.block(table(group));
    return 0;
  }
  const names = group.map(({ name }) => name.split(" ")[1]!);
  const list = names.join(", ");
  if (second === undefined || second.startsWith("-"))
    throw new UsageError(`${first}: missing subcommand, one of ${list}`);
  const near = suggest(second, names);
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  throw new UsageError(`${first}: unknown subcommand ${second}, expected one of ${list}${hint}`);
}

/** npm also has a test runner called tape. A test file as the first argument was meant for that one. */
const testFile = /[*?{]|\.(test|spec)\.|\.[cm]?[jt]sx?$|^tests?\//;

function unknown(word: string): UsageError {
  if (testFile.test(word)) {
    return new UsageError(
      `${word} looks like a test file. This is durable-tape's command; the test runner called tape is another ` +
        "package: run it as npx -p tape tape, or call this one durable-tape",
    );
  }
  const near = suggest(word, ["--help", "--version", ...new Set(commands.map(({ name }) => name.split(" ")[0]!))]);
  return new UsageError(`unknown command ${word}${near === undefined ? "" : `; did you mean ${near}?`}`);
}

function usage(): string {
  return [
    `durable-tape ${version}`,
    "Durable execution for agents and services whose side effects matter.",
    "",
    table(commands),
    "",
    "  durable-tape <command> --help     arguments and options of a command",
    "  durable-tape --version",
    "",
  ].join("\n");
}

function table(listed: readonly Command[]): string {
  const width = Math.max(...listed.map(({ name }) => name.length));
  return listed.map(({ name, summary }) => `  durable-tape ${name.padEnd(width)}  ${summary}`).join("\n");
}
