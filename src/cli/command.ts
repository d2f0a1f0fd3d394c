import { parseArgs } from "node:util";
import { isTapeError } from "../model/errors.ts";
import { durationOrThrow } from "../sdk/validate.ts";
import type { Screen } from "./screen.ts";

/** A word after the command's name. The last may be left out, if it says so. */
export interface Argument {
  readonly name: string;
  readonly help: string;
  readonly optional?: true;
}

export interface Option {
  /** What stands for its value in the help; absent: it is a switch. */
  readonly value?: string;
  readonly short?: string;
  readonly many?: true;
  readonly help: string;
}

/** What was asked for: every argument and option by its name. */
export interface Invocation {
  readonly arguments: Readonly<Record<string, string>>;
  readonly screen: Screen;
  /** The option's value, if it was given. */
  text(option: string): string | undefined;
  /** The same as a duration, in milliseconds. */
  duration(option: string): number | undefined;
  all(option: string): readonly string[];
  given(option: string): boolean;
}

/**
 * One command of the program. The table of them is what the parser reads, what --help and the shell's completion print,
 * and what docs/cli.md is compared with.
 */
export interface Command {
  /** One word or two: "runs", "lease takeover". */
  readonly name: string;
  readonly summary: string;
  readonly arguments?: readonly Argument[];
  readonly options?: Readonly<Record<string, Option>>;
  /** The exit code: 0 fine, 1 refused, 2 usage, 3 something is UNKNOWN or STUCK. */
  readonly run: (invocation: Invocation) => Promise<number>;
}

/** A command line that says something the program does not understand. */
export class UsageError extends Error {}

export function usageOf({ name, arguments: words = [], options = {} }: Command): string {
  const shown = words.map((word) => (word.optional ? `[${word.name}]` : `<${word.name}>`));
  return ["durable-tape", name, ...shown, ...(Object.keys(options).length > 0 ? ["[options]"] : [])].join(" ");
}

export function helpOf(command: Command): string {
  const { summary, arguments: words = [], options = {} } = command;
  const rows = [
    ...words.map(({ name, help }) => [name, help] as const),
    ...Object.entries(options).map(([name, option]) => [optionText(name, option), option.help] as const),
  ];
  const width = Math.max(0, ...rows.map(([left]) => left.length));
  const lines = rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
  return [usageOf(command), "", summary, ...(lines.length > 0 ? ["", ...lines] : [])].join("\n");
}

export function optionText(name: string, { value, short, many }: Option): string {
  const said = `--${name}${value === undefined ? "" : ` ${value}`}${many ? " …" : ""}`;
  return short === undefined ? said : `-${short}, ${said}`;
}

/** Reads the words after the command's name; throws Misuse with what is wrong. */
export function parse(command: Command, argv: readonly string[], screen: Screen): Invocation {
  const { options = {}, arguments: words = [] } = command;
  const config = Object.fromEntries(
    Object.entries(options).map(([name, { value, short, many }]) => [
      name,
      {
        type: value === undefined ? ("boolean" as const) : ("string" as const),
        ...(short !== undefined && { short }),
        ...(many && { multiple: true }),
      },
    ]),
  );
  let parsed: { values: Record<string, unknown>; positionals: string[] };
  try {
    parsed = parseArgs({ args: [...argv], options: config, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError(`${command.name}: ${error instanceof Error ? error.message : String(error)}`);
  }
  const { values, positionals } = parsed;
  if (positionals.length > words.length) throw new UsageError(`${command.name} takes no ${positionals[words.length]}`);
  const missing = words[positionals.length];
  if (missing !== undefined && missing.optional !== true) {
    throw new UsageError(`${command.name} needs <${missing.name}>: ${missing.help}`);
  }
  const listOf = (option: string): readonly string[] => {
    const value = values[option];
    return value === undefined ? [] : Array.isArray(value) ? (value as string[]) : [String(value)];
  };
  return {
    arguments: Object.fromEntries(positionals.map((word, k) => [words[k]!.name, word])),
    screen,
    text: (option) => listOf(option)[0],
    duration: (option) => durationOption(option, listOf(option)[0]),
    all: listOf,
    given: (option) => values[option] === true,
  };
}

function durationOption(option: string, text: string | undefined): number | undefined {
  try {
    return text === undefined ? undefined : durationOrThrow("the option", `--${option}`, text);
  } catch (error) {
    throw isTapeError(error) ? new UsageError(error.message) : error;
  }
}
