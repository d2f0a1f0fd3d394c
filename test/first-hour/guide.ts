import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

/** What a reader does next: write a file, or type commands into a terminal and read what they print. */
export type Step = FileStep | CommandStep;

export interface FileStep {
  readonly kind: "file";
  readonly line: number;
  readonly path: string;
  readonly text: string;
}

export interface CommandStep {
  readonly kind: "command";
  readonly line: number;
  /** The reader's first terminal is `main`. The commands of another one may keep running. */
  readonly terminal: string;
  readonly commands: string;
  /** What the terminal shows; undefined: only the exit code counts. */
  readonly shows?: string;
}

export interface Guide {
  readonly name: string;
  readonly steps: readonly Step[];
  /** Loopback ports that its programs listen on. */
  readonly ports: readonly number[];
  /** Whether it expects the address of a PostgreSQL server in DATABASE_URL. */
  readonly usesPostgres: boolean;
}

export const guidesFolder = join(import.meta.dirname, "../../docs/guides");

/** Every page of docs/guides but the index. */
export const guideNames = (): string[] =>
  readdirSync(guidesFolder)
    .filter((file) => file.endsWith(".md") && file !== "index.md")
    .map((file) => basename(file, ".md"))
    .sort();

export const readGuide = (name: string): Guide =>
  parseGuide(name, readFileSync(join(guidesFolder, `${name}.md`), "utf8"));

/** Languages of blocks that are files, and how a comment of theirs starts: the first line names the file. */
const comments: Readonly<Record<string, string>> = { ts: "//", yaml: "#", sql: "--" };

interface Block {
  readonly language: string;
  /** The second word after the backticks. */
  readonly word: string;
  readonly body: string;
  readonly line: number;
}

/**
 * The steps of a page. A block has one of these forms, and any other is an error, because the runner would leave it out:
 *
 *   ts, yaml, sql    a file; its first line is a comment, `file: PATH`
 *   sh [TERMINAL]    commands
 *   text             what the commands of the block before it print
 *   ts SYSTEM        code of another system (`ts temporal`), which is shown and not executed
 *   text picture     a picture made of letters
 */
export function parseGuide(name: string, page: string): Guide {
  const steps: Step[] = [];
  for (const block of blocksOf(page)) {
    if (block.word === "picture") continue;
    if (block.language === "text") addOutput(name, steps, block);
    else if (block.language === "sh") steps.push(commandOf(block));
    else if (block.language !== "ts" || block.word === "") steps.push(fileOf(name, block));
  }
  const ports = new Set([...page.matchAll(/(?:localhost|127\.0\.0\.1):(\d+)/g)].map(([, port]) => Number(port)));
  return { name, steps, ports: [...ports], usesPostgres: page.includes("DATABASE_URL") };
}

function blocksOf(page: string): Block[] {
  return [...page.matchAll(/^```(\w+)[ ]?(\S*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    language: match[1]!,
    word: match[2]!,
    body: match[3]!,
    line: page.slice(0, match.index).split("\n").length,
  }));
}

const commandOf = ({ word, body, line }: Block): CommandStep => ({
  kind: "command",
  line,
  terminal: word === "" ? "main" : word,
  commands: body,
});

function addOutput(name: string, steps: Step[], { body, line }: Block): void {
  const last = steps.at(-1);
  if (last?.kind !== "command" || last.shows !== undefined)
    throw new Error(`${name}.md:${line}: a text block follows the commands that print it`);
  steps[steps.length - 1] = { ...last, shows: body };
}

function fileOf(name: string, { language, body, line }: Block): FileStep {
  const comment = comments[language];
  if (comment === undefined)
    throw new Error(`${name}.md:${line}: a block is ts, yaml or sql with a file, or sh, or text`);
  const [first = ""] = body.split("\n", 1);
  const path = first.startsWith(`${comment} file: `) ? first.slice(comment.length + 7).trim() : "";
  if (!/^[\w.-]+(\/[\w.-]+)*$/.test(path) || path.split("/").includes(".."))
    throw new Error(`${name}.md:${line}: the first line of a file is \`${comment} file: PATH\``);
  return { kind: "file", line, path, text: body };
}
