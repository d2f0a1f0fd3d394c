import { reasonOf } from "../base/reason.ts";
import { suggest } from "../base/suggest.ts";
import { isTapeError } from "../model/errors.ts";
import { type Command, helpOf, parse, UsageError } from "./command.ts";
import { commands } from "./commands.ts";
import { complain, type Screen, screenOn } from "./screen.ts";
import { version } from "./version.ts";

/** Exit codes: 0 fine, 1 refused or failed, 2 usage, 3 something is UNKNOWN or STUCK (status and doctor). */
export async function main(argv: readonly string[]): Promise<number> {
  const screen = screenOn(process.stdout);
  try {
    return await dispatch(argv, screen);
  } catch (error) {
    if (error instanceof UsageError) {
      complain(process.stderr, `TAPE_BAD_INPUT: ${error.message}`, "Run durable-tape --help to see what there is.");
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
  const asksHelp = first === "--help" || first === "-h" || first === "help";
  const words = asksHelp ? argv.slice(1) : argv;
  const command = find(words);
  if (asksHelp && words.length === 0) {
    screen.block(usage());
    return 0;
  }
  if (command === undefined)
    return groupHelp(words, screen, asksHelp || words.includes("--help") || words.includes("-h"));
  const rest = words.slice(command.name.split(" ").length);
  if (asksHelp || rest.includes("--help") || rest.includes("-h")) {
    screen.block(helpOf(command));
    return 0;
  }
  return command.run(parse(command, rest, screen));
}

/** Two words first: "lease ls" is no argument of a command "lease". */
function find(words: readonly string[]): Command | undefined {
  const named = (name: string) => commands.find((command) => command.name === name);
  return named(words.slice(0, 2).join(" ")) ?? named(words[0] ?? "");
}

/** The first word of commands of two: what there is under it. */
function groupHelp(words: readonly string[], screen: Screen, asked: boolean): number {
  const [first = "", second] = words;
  const under = commands.filter(({ name }) => name.startsWith(`${first} `));
  if (under.length === 0) throw unknown(first);
  if (asked) {
    screen.block(table(under));
    return 0;
  }
  const names = under.map(({ name }) => name.split(" ")[1]!);
  const near = second === undefined ? undefined : suggest(second, names);
  const but = second === undefined ? "; name one of them" : `, not ${second}`;
  throw new UsageError(
    `${first} knows ${names.join(", ")}${but}${near === undefined ? "" : `; did you mean ${near}?`}`,
  );
}

/** npm has a test tool called tape: whoever calls ours with a test file meant that one. */
const testFile = /[*?{]|\.(test|spec)\.|\.[cm]?[jt]sx?$|^tests?\//;

function unknown(word: string): UsageError {
  if (testFile.test(word)) {
    return new UsageError(
      `${word} looks like a test file. This is the program of durable-tape; the test tool called tape is another ` +
        "package: run it as npx -p tape tape, or call ours durable-tape",
    );
  }
  const near = suggest(word, ["--help", "--version", ...new Set(commands.map(({ name }) => name.split(" ")[0]!))]);
  return new UsageError(`there is no command ${word}${near === undefined ? "" : `; did you mean ${near}?`}`);
}

function usage(): string {
  return [
    `durable-tape ${version}`,
    "Durable execution for agents and services that act on the world.",
    "",
    table(commands),
    "",
    "  durable-tape <command> --help     its arguments and options",
    "  durable-tape --version",
    "",
  ].join("\n");
}

function table(some: readonly Command[]): string {
  const width = Math.max(...some.map(({ name }) => name.length));
  return some.map(({ name, summary }) => `  durable-tape ${name.padEnd(width)}  ${summary}`).join("\n");
}
