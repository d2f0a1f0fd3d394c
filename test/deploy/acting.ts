import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { DockerfileParser, type Instruction } from "dockerfile-ast";

/** The image that a Dockerfile would give, as a folder: its file system, its user and its command. */
export interface ImageFolder {
  /** The folder that stands for the root of the last stage. */
  readonly root: string;
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly user: string | undefined;
  readonly command: readonly string[];
}

/**
 * Carries out a Dockerfile without an image: each stage is a folder, RUN is executed in its WORKDIR, and the machine's
 * own Node stands for the base image. It shows that the steps work and in which order; it builds no image.
 */
export function carryOut(dockerfile: string, ignore: string, context: string, place: string): ImageFolder {
  const stages = new Map<string, string>();
  let stage = { root: "", workdir: "/", env: {} as Record<string, string>, user: undefined as string | undefined };
  let command: string[] = [];
  for (const instruction of DockerfileParser.parse(dockerfile).getInstructions()) {
    const content = instruction.getArgumentsContent() ?? "";
    const words = content.split(/\s+/);
    switch (instruction.getKeyword()) {
      case "FROM": {
        const name = words[2] ?? "last";
        stage = { root: join(place, name), workdir: "/", env: {}, user: undefined };
        mkdirSync(stage.root, { recursive: true });
        stages.set(name, stage.root);
        break;
      }
      case "WORKDIR":
        stage.workdir = content;
        mkdirSync(join(stage.root, content), { recursive: true });
        break;
      case "ENV":
        Object.assign(stage.env, Object.fromEntries([content.split("=", 2)]));
        break;
      case "USER":
        stage.user = content;
        break;
      case "COPY":
        copy(instruction, words, {
          stages,
          context,
          ignored: ignored(ignore),
          root: stage.root,
          workdir: stage.workdir,
        });
        break;
      case "RUN":
        execFileSync("sh", ["-c", content], { cwd: join(stage.root, stage.workdir), stdio: "pipe" });
        break;
      case "CMD":
        command = JSON.parse(content) as string[];
        break;
      case "STOPSIGNAL":
        break;
      default:
        throw new Error(`${instruction.getKeyword()} is not acted out`);
    }
  }
  return { ...stage, command };
}

interface CopyPlace {
  readonly stages: ReadonlyMap<string, string>;
  readonly context: string;
  readonly ignored: (path: string) => boolean;
  readonly root: string;
  readonly workdir: string;
}

function copy(
  instruction: Instruction,
  words: readonly string[],
  { stages, context, ignored: skip, root, workdir }: CopyPlace,
): void {
  const paths = words.filter((word) => !word.startsWith("--"));
  const target = join(root, resolve(workdir, paths.at(-1)!));
  const from = /--from=(\S+)/.exec(instruction.getTextContent())?.[1];
  const source = from === undefined ? context : stages.get(from);
  if (source === undefined) throw new Error(`there is no stage ${from}`);
  for (const path of paths.slice(0, -1)) {
    const found = join(source, path);
    const isFolder = existsSync(found) && path.match(/^(\.|\/.*)$/) !== null;
    cpSync(found, isFolder ? target : join(target, path), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (file) => from !== undefined || !skip(relative(context, file)),
    });
  }
}

/** The patterns of a .dockerignore file that the renderer uses: a path, and `**` before a name with `*`. */
function ignored(text: string): (path: string) => boolean {
  const patterns = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return (path) =>
    patterns.some((pattern) => {
      const [, name] = /^\*\*\/(.*)$/.exec(pattern) ?? [];
      if (name === undefined) return path === pattern || path.startsWith(`${pattern}/`);
      const regex = new RegExp(`^${name.replaceAll(".", "\\.").replaceAll("*", "[^/]*")}$`);
      return path.split("/").some((part) => regex.test(part));
    });
}

/** Programs that write down how they were called, with the files they were given, and succeed. */
export function recordingPrograms(
  folder: string,
  names: readonly string[],
): { readonly path: string; calls(): string[] } {
  const log = join(folder, "calls");
  mkdirSync(folder, { recursive: true });
  for (const name of names) {
    const file = join(folder, name);
    writeFileSync(
      file,
      [
        "#!/bin/sh",
        `printf '%s\\n' "${name} $*" >> '${log}'`,
        'for word in "$@"; do case "$word" in */*.yaml)',
        `  cp "$word" '${folder}/'"$(basename "$word")" ;;`,
        "esac; done",
      ].join("\n"),
    );
    chmodSync(file, 0o755);
  }
  return { path: folder, calls: () => (existsSync(log) ? readFileSync(log, "utf8").trimEnd().split("\n") : []) };
}

/** The files below a folder, without links and folders. */
export const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .flatMap((entry) => (entry.isFile() ? [relative(folder, join(entry.parentPath, entry.name))] : []))
    .toSorted();
