import { parseArgs } from "node:util";
import { defined } from "../base/defined.ts";
import { isTapeError } from "../model/errors.ts";
import { durationOrThrow } from "../sdk/validate.ts";
import type { Screen } from "./screen.ts";

/** A positional argument. Only the last one may be optional. */
export interface Argument {
  readonly name: string;
  readonly help: string;
  readonly optional?: true;
}

export interface Option {
  /** The placeholder of its value in the help; absent for a switch. */
  readonly value?: string;
  readonly short?: string;
  readonly many?: true;
  readonly help: string;
}

/** One parsed command line: every argument and option by its name. */
export interface Invocation {
  readonly arguments: Readonly<Record<string, string>>;
  readonly screen: Screen;
  /** The option's value, if present. */
  text(option: string): string | undefined;
  /** The same as a duration, in milliseconds. */
  duration(option: string): number | undefined;
  all(option: string): readonly string[];
  given(option: string): boolean;
}

/** One command. The parser, --help, shell completion and docs/cli.md are all derived from the table of commands. */
export interface Command {
  /** One word or two: "runs", "lease takeover". */
  readonly name: string;
  readonly summary: string;
  readonly arguments?: readonly Argument[];
  readonly options?: Readonly<Record<string, Option>>;
  /** Returns the exit code: 0 success, 1 failure, 2 usage error, 3 something needs attention. */
  readonly run: (invocation: Invocation) => Promise<number>;
}

/** A command line that the program does not understand. */
export class UsageError extends Error {}

export function usageOf({ name, arguments: parameters = [], options = {} }: Command): string {
  const placeholders = parameters.map((parameter) =>
    parameter.optional ? `[${parameter.name}]` : `<${parameter.name}>`,
  );
  return ["durable-tape", name, ...placeholders, ...(Object.keys(options).length > 0 ? ["[options]"] : [])].join(" ");
}

export function helpOf(command: Command): string {
  const { summary, arguments: parameters = [], options = {} } = command;
  const rows = [
    ...parameters.map(({ name, help }) => [name, help] as const),
    ...Object.entries(options).map(([name, option]) => [optionText(name, option), option.help] as const),
  ];
  const width = Math.max(0, ...rows.map(([left]) => left.length));
  const lines = rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
  return [usageOf(command), "", summary, ...(lines.length > 0 ? ["", ...lines] : [])].join("\n");
}

export function optionText(name: string, { value, short, many }: Option): string {
  const long = `--${name}${value === undefined ? "" : ` ${value}`}${many ? " …" : ""}`;
  return short === undefined ? long : `-${short}, ${long}`;
}

/** Parses the arguments after the command's name; throws `UsageError` for a bad command line. */
export function parse(command: Command, argv: readonly string[], screen: Screen): Invocation {
  const { options = {}, arguments: parameters = [] } = command;
  const config = Object.fromEntries(
    Object.entries(options).map(([name, { value, short, many }]) => [
      name,
      {
        type: value === undefined ? ("boolean" as const) : ("string" as const),
        ...defined({ short }),
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
  if (positionals.length > parameters.length)
    throw new UsageError(`${command.name}: unexpected argument ${positionals[parameters.length]}`);
  const missing = parameters[positionals.length];
  if (missing !== undefined && missing.optional !== true) {
    throw new UsageError(`${command.name}: missing <${missing.name}> (${missing.help})`);
  }
  const listOf = (option: string): readonly string[] => {
    const value = values[option];
    return value === undefined ? [] : Array.isArray(value) ? (value as string[]) : [String(value)];
  };
  return {
    arguments: Object.fromEntries(positionals.map((text, k) => [parameters[k]!.name, text])),
    screen,
    text: (option) => listOf(option)[0],
    duration: (option) => durationOption(option, listOf(option)[0]),
    all: listOf,
    given: (option) => values[option] === true,
  };
}

/** A duration in milliseconds, from the text of an option. */
export function durationOption(option: string, text: string | undefined): number | undefined {
  try {
    return text === undefined ? undefined : durationOrThrow("option", `--${option}`, text);
  } catch (error) {
    throw isTapeError(error) ? new UsageError(error.message) : error;
  }
}
