import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { z } from "zod";
import { suggest } from "../base/suggest.ts";
import { TapeError } from "../model/errors.ts";
import { type FileContent, type Place, type Problem, readDocument } from "./document.ts";
import { keysAt, type Leaf, leafAt, leaves, valueFromText, variableOf } from "./leaves.ts";
import { builtInNamesake, contradictions, unusedSettings } from "./relations.ts";
import { type Config, configSchema } from "./schema.ts";

/** Where a value comes from. The precedence, from low to high, is default, file, environment, flag. */
export type Origin =
  | { readonly from: "default" }
  | { readonly from: "file"; readonly file: string; readonly place: Place; readonly variables: readonly string[] }
  | { readonly from: "environment"; readonly variable: string }
  | { readonly from: "flag"; readonly flag: string };

/** A setting from the command line: its path, its text, and the flag to name in messages. */
export interface FlagValue {
  readonly path: string;
  readonly text: string;
  readonly flag: string;
}

export interface LoadOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The file to read. Default: TAPE_CONFIG, otherwise tape.yaml if it exists. */
  readonly file?: string;
  readonly flags?: readonly FlagValue[];
  /** The message about a variable in `${…}` that has no value. */
  readonly missing?: (name: string) => string;
}

export interface LoadedConfig {
  readonly settings: Config;
  /** The file, as it was named; undefined without one. */
  readonly file: string | undefined;
  /** Paths in the file are relative to its folder; without a file, to the working directory. */
  readonly folder: string;
  readonly origins: ReadonlyMap<string, Origin>;
  /** Probable mistakes that are not errors: misspelt variables, settings that change nothing. */
  readonly warnings: readonly string[];
}

export const defaultFile = "tape.yaml";
/** A hundred times the configuration of a hundred reactors. */
const maxBytes = 1_048_576;

/**
 * Reads `tape.yaml` and applies the environment and the command line. Throws one error that lists every problem with its
 * place.
 *
 * @example
 * const { settings } = loadConfig({ cwd: process.cwd(), env: process.env });
 */
export function loadConfig(options: LoadOptions): LoadedConfig {
  const { env, cwd } = options;
  const named = options.file ?? env.TAPE_CONFIG;
  const file = named ?? defaultFile;
  const text = readText(resolve(cwd, file), file, named !== undefined);
  const layers = new Layers(text === undefined ? undefined : file);
  if (text !== undefined) layers.addFile(readDocument(text, env, options.missing));
  const misspelt = layers.addEnvironment(env);
  for (const flag of options.flags ?? []) layers.addFlag(flag);
  const settings = layers.settle();
  const origins = layers.originsOf(settings);
  const explicit = [...origins].flatMap(([path, { from }]) => (from === "default" ? [] : [path]));
  const warnings = [...misspelt, ...unusedSettings(explicit)];
  if (text === undefined) return { settings, file: undefined, folder: cwd, origins, warnings };
  return { settings, file, folder: dirname(resolve(cwd, file)), origins, warnings };
}

/** The text of the configuration file; undefined if it is optional and missing. */
export function readText(path: string, file: string, required: boolean): string | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" && !required) return undefined;
    throw badConfig([{ where: file, message: code === "ENOENT" ? "file not found" : `cannot be read (${code})` }]);
  }
  if (bytes.length > maxBytes) throw badConfig([{ where: file, message: "too large for a configuration" }]);
  return bytes.toString("utf8");
}

export function badConfig(problems: readonly Problem[]): TapeError {
  const lines = problems.map(({ where, message }) => `${where}: ${message}`);
  return new TapeError("TAPE_BAD_CONFIG", lines.join("\n"), { problems });
}

type Tree = { [key: string]: unknown };

/** Merges the layers in order of precedence and records the origin of every value. */
class Layers {
  readonly #file: string | undefined;
  readonly #tree: Tree = {};
  readonly #origins = new Map<string, Origin>();
  readonly #problems: Problem[] = [];
  #keys: FileContent["keys"] = new Map();

  constructor(file: string | undefined) {
    this.#file = file;
  }

  addFile({ values, keys, problems }: FileContent): void {
    const file = this.#file!;
    this.#keys = keys;
    for (const { message, ...place } of problems) this.#problems.push({ where: at(file, place), message });
    // Sections without values count too, so that a misspelt one is reported.
    for (const key of keys.keys()) if (keysAt(key.split(".")) !== undefined) this.#section(key.split("."));
    for (const { path, value, place, variables } of values) {
      const leaf = leafAt(path);
      if (Array.isArray(value) && leaf?.types.includes("array") !== true) {
        this.#problem(at(file, place), `${path.join(".") || "the file"} must not be a list`);
        continue;
      }
      if (value === null && leaf === undefined && keysAt(path) !== undefined) continue; // `reactors:` without a value
      const text = typeof value === "string" && variables.length > 0 ? value : undefined;
      const typed = text === undefined || leaf === undefined ? value : (valueFromText(text, leaf) ?? text);
      this.#set(path, typed, { from: "file", file, place, variables });
    }
  }

  /** Applies the environment; returns a warning for each misspelt variable. */
  addEnvironment(env: LoadOptions["env"]): string[] {
    const paths = leaves().flatMap(({ path }) => (path.startsWith("tape.deploy.") ? [] : this.#named(path)));
    const byVariable = new Map(paths.map((path) => [variableOf(path), path]));
    const warnings: string[] = [];
    for (const [variable, text] of Object.entries(env)) {
      if (!variable.startsWith("TAPE_") || text === undefined || text === "") continue;
      const path = byVariable.get(variable)?.split(".");
      const leaf = path === undefined ? undefined : leafAt(path);
      if (path !== undefined && leaf !== undefined) {
        this.#setText(path, leaf, text, variable, { from: "environment", variable });
      } else if (!otherVariables.has(variable)) {
        const near = suggest(variable, [...byVariable.keys(), ...otherVariables]);
        if (near !== undefined) warnings.push(`variable ${variable} is not a setting; did you mean ${near}?`);
      }
    }
    return warnings;
  }

  /** The path with `*` replaced by each name that the file has in its place. */
  #named(path: string): string[] {
    const [before, after] = path.split(/\.\*(.*)/s);
    if (after === undefined) return [path];
    const section = before!.split(".").reduce<unknown>((tree, key) => (tree as Tree | undefined)?.[key], this.#tree);
    const names = typeof section === "object" && section !== null ? Object.keys(section) : [];
    return names.flatMap((name) => this.#named(`${before}.${name}${after}`));
  }

  addFlag({ path, text, flag }: FlagValue): void {
    const parts = path.split(".");
    const leaf = leafAt(parts);
    if (leaf !== undefined) {
      this.#setText(parts, leaf, text, flag, { from: "flag", flag });
      return;
    }
    const near = suggest(
      path,
      leaves().map((known) => known.path),
    );
    this.#problem(flag, `unknown setting ${path}${near === undefined ? "" : `; did you mean ${near}?`}`);
  }

  settle(): Config {
    const parsed = configSchema.safeParse(this.#tree);
    for (const issue of parsed.error?.issues ?? []) this.#report(issue);
    for (const { path, message } of parsed.success ? contradictions(parsed.data) : []) {
      this.#problem(this.#where(path), `${path.join(".")}: ${message}`);
    }
    if (this.#problems.length > 0 || !parsed.success) throw badConfig(this.#problems);
    return parsed.data;
  }

  originsOf(settings: Config): Map<string, Origin> {
    const origins = new Map<string, Origin>();
    for (const [path] of flatten(settings)) origins.set(path, this.#origins.get(path) ?? { from: "default" });
    return origins;
  }

  #setText(path: readonly string[], leaf: Leaf, text: string, where: string, origin: Origin): void {
    const value = valueFromText(text, leaf);
    if (value === undefined) this.#problem(where, `${path.join(".")} must be ${typeText(leaf)}`);
    else this.#set(path, value, origin);
  }

  #set(path: readonly string[], value: unknown, origin: Origin): void {
    const parent = this.#section(path.slice(0, -1));
    const key = path.at(-1);
    if (parent === undefined || key === undefined) {
      this.#problem(this.#where(path), "the configuration must be a map of keys");
      return;
    }
    parent[key] = value;
    this.#origins.set(path.join("."), origin);
  }

  #section(path: readonly string[]): Tree | undefined {
    let tree = this.#tree;
    for (const key of path) {
      tree[key] ??= {};
      const next = tree[key];
      if (typeof next !== "object" || next === null) return undefined; // it is a value: the schema reports it
      tree = next as Tree;
    }
    return tree;
  }

  /** Translates a schema issue. The message does not repeat the value, which may be a secret. */
  #report(issue: z.core.$ZodIssue): void {
    const path = issue.path.map(String);
    const name = path.join(".");
    if (issue.code === "unrecognized_keys") {
      for (const key of issue.keys) {
        const near = suggest(key, keysAt(path) ?? []);
        const hint =
          near === undefined ? `; known keys are ${(keysAt(path) ?? []).join(", ")}` : `; did you mean ${near}?`;
        const place = this.#keys.get([...path, key].join("."));
        const where = place === undefined ? this.#where([...path, key]) : at(this.#file!, place);
        this.#problem(where, `unknown key ${key} in ${name || "the file"}${hint}`);
      }
      return;
    }
    const leaf = leafAt(path);
    if (path.at(-1) === "handler" && !this.#origins.has(name)) {
      const reactor = path.at(-2)!;
      this.#problem(this.#where(path.slice(0, -1)), `reactor ${reactor} has no handler${builtInNamesake(reactor)}`);
    } else if (issue.code === "invalid_format") {
      this.#problem(this.#where(path), `${name} ${issue.message}`);
    } else if (leaf !== undefined) {
      this.#problem(this.#where(path), `${name} must be ${typeText(leaf)}${bounds(issue)}`);
    } else {
      this.#problem(this.#where(path), `${name || "the file"} must be a map of keys`);
    }
  }

  #problem(where: string, message: string): void {
    this.#problems.push({ where, message });
  }

  /** The closest known place: of the value, otherwise of its key, otherwise of its section. */
  #where(path: readonly string[]): string {
    for (let length = path.length; length > 0; length--) {
      const name = path.slice(0, length).join(".");
      const origin = this.#origins.get(name);
      if (origin !== undefined && origin.from !== "default") return describeOrigin(origin);
      const place = this.#keys.get(name);
      if (place !== undefined) return at(this.#file!, place);
    }
    return this.#file ?? "configuration";
  }
}

/** Variables of Tape that are not settings. */
const otherVariables: ReadonlySet<string> = new Set([
  ...["TAPE_CONFIG", "TAPE_REPLICA_ID", "TAPE_TEST_POSTGRES_URL"],
  // Of the handlers that `durable-tape deploy gcp` renders.
  ...["TAPE_PUSH_REACTORS", "TAPE_PUSH_AUDIENCE", "TAPE_PUSH_EMAIL"],
]);

const at = (file: string, { line, column }: Place): string => `${file}:${line}:${column}`;

export function describeOrigin(origin: Origin): string {
  switch (origin.from) {
    case "default":
      return "default";
    case "environment":
      return origin.variable;
    case "flag":
      return origin.flag;
    case "file":
      return at(origin.file, origin.place);
  }
}

function typeText({ types, choices }: Leaf): string {
  if (choices !== undefined) return `one of ${choices.join(", ")}`;
  const names: Record<string, string> = {
    boolean: "true or false",
    integer: "a whole number",
    number: "a number",
    string: types.length > 1 ? "unlimited" : "text",
    array: "a list",
  };
  return types.map((type) => names[type] ?? type).join(" or ");
}

function bounds(issue: z.core.$ZodIssue): string {
  if (issue.code === "too_small" && issue.origin !== "string") {
    return issue.inclusive === false ? ` above ${issue.minimum}` : `, at least ${issue.minimum}`;
  }
  if (issue.code === "too_big") return `, at most ${issue.maximum}`;
  return issue.code === "too_small" ? " that is not empty" : "";
}

/** Every value with its full path. */
export function flatten(tree: object, path: readonly string[] = []): [string, unknown][] {
  return Object.entries(tree).flatMap(([key, value]) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? flatten(value as object, [...path, key])
      : [[[...path, key].join("."), value] as [string, unknown]],
  );
}
