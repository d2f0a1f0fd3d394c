import { posix } from "node:path";
import type { SourceFile } from "../files.ts";

const inlineLink = /\]\(\s*<?([^)\s>]+)>?[^)]*\)/g;
const definition = /^\s*\[[^\]]+\]:\s*<?(\S+?)>?\s*$/gm;
const attribute = /\b(?:src|href)="([^"]+)"/g;

const codeBlock = /^(```|~~~)[\s\S]*?^\1/gm;

/** Every relative link of a Markdown file leads to a file or folder of the repository. */
export function brokenLinks(files: SourceFile[], repository: string[]): string[] {
  const known = new Set(repository.flatMap(withFolders));
  return files
    .filter(({ path }) => path.endsWith(".md"))
    .flatMap((file) =>
      linksOf(file)
        .filter((link) => !/^([a-z][a-z0-9+.-]*:|#|\/\/)/i.test(link))
        .filter((link) => !known.has(target(file, link)))
        .map((link) => `${file.path} links to ${link}, which does not exist; correct the path or remove the link`),
    );
}

const namedPath = /`((?:src|test|testkit|simulation|tools|bench|dashboard|docs|examples|template)\/[\w./-]+)`/g;

/** A file that the reader is asked to save. */
const savedByReader = "bench/peers/absurd.sql";

/** Every path that a Markdown file names in backticks exists. */
export function missingPaths(files: SourceFile[], repository: string[]): string[] {
  const known = new Set([...repository.flatMap(withFolders), savedByReader]);
  return files
    .filter(({ path }) => path.endsWith(".md"))
    .flatMap(({ path, text }) =>
      [...text.replace(codeBlock, "").matchAll(namedPath)]
        .map((found) => found[1]!)
        .filter((name) => !known.has(name.replace(/\/$/, "")))
        .map((name) => `${path} names ${name}, which does not exist; correct the path`),
    );
}

function linksOf(file: SourceFile): string[] {
  const prose = file.text.replace(codeBlock, "").replace(/`[^`\n]*`/g, "");
  return [inlineLink, definition, attribute].flatMap((pattern) =>
    [...prose.matchAll(pattern)].map((found) => found[1]!),
  );
}

function target(file: SourceFile, link: string): string {
  const path = decodeURI(link.replace(/[#?].*$/, ""));
  const from = path.startsWith("/") ? "." : posix.dirname(file.path);
  return posix.normalize(posix.join(from, path)).replace(/\/$/, "");
}

/** `a/b/c.md` -> `a/b/c.md`, `a/b`, `a`, `.` */
function withFolders(path: string): string[] {
  const folder = posix.dirname(path);
  return folder === path ? [path] : [path, ...withFolders(folder)];
}
