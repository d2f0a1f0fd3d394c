import { posix } from "node:path";

/** A link or an image of a page, and where it leads. */
export interface PageLink {
  /** As it is written: `../leases.md#terms`. */
  readonly target: string;
  readonly start: number;
  readonly end: number;
}

const patterns = [
  /\]\(\s*<?([^)\s>]+)>?[^)]*\)/dg,
  /^\s*\[[^\]]+\]:\s*<?(\S+?)>?\s*$/dgm,
  /\b(?:src|href|srcset)="([^"]+)"/dg,
];

/** Blanks code, so that what follows finds only prose; positions stay. */
export const proseOnly = (text: string): string =>
  text
    .replace(/^ *(```|~~~)[\s\S]*?^ *\1/gm, (code) => code.replace(/[^\n]/g, " "))
    .replace(/`[^`\n]*`/g, (code) => " ".repeat(code.length));

/** Relative links of a page, in order. */
export function linksOf(text: string): PageLink[] {
  const prose = proseOnly(text);
  return patterns
    .flatMap((pattern) =>
      [...prose.matchAll(pattern)].map((found) => {
        const [start, end] = found.indices![1]!;
        return { target: text.slice(start, end), start, end };
      }),
    )
    .filter(({ target }) => !/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(target))
    .sort((a, b) => a.start - b.start);
}

/** The file or folder that a link names, from the root of the repository, and its anchor. */
export function resolveLink(page: string, target: string): { readonly path: string; readonly anchor: string } {
  const [file = "", anchor = ""] = target.split("#");
  if (file === "") return { path: page, anchor };
  return { path: posix.normalize(posix.join(posix.dirname(page), decodeURI(file))).replace(/\/$/, ""), anchor };
}

/** Replaces the targets of all relative links. */
export function withLinks(text: string, replace: (target: string) => string): string {
  let out = "";
  let at = 0;
  for (const { target, start, end } of linksOf(text)) {
    if (start < at) continue;
    out += text.slice(at, start) + replace(target);
    at = end;
  }
  return out + text.slice(at);
}

/** The headings of a page as a reader sees them, for its anchors. */
export function headingsIn(text: string): string[] {
  return text
    .replace(/^ *(```|~~~)[\s\S]*?^ *\1/gm, (code) => code.replace(/[^\n]/g, " "))
    .split("\n")
    .flatMap((line) => /^#{1,6} (.+?)(?: #+)?$/.exec(line)?.[1] ?? [])
    .map((heading) => heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*]/g, ""));
}
