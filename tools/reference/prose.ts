import type { DocComment } from "./doc-comment.ts";

/** Links to a public name, or undefined for a name that is not public. */
export type LinkTo = (name: string) => string | undefined;

const errorCode = /`?\b(TAPE_[A-Z]+(?:_[A-Z]+)*)\b`?/g;
const isVariable = (name: string): boolean =>
  /^TAPE_(REPLICA_ID|TOKEN|TOKEN_HOST|BUILD|LOG_LEVEL|CONFIG|STORE|URL)$/.test(name);

/** The text of a comment as Markdown: links, error codes, and nothing that a page could take for HTML. */
export function markdown(text: string, linkTo: LinkTo): string {
  return text
    .replace(/\{@link (\w+)\}/g, (_, name: string) => linkTo(name) ?? `\`${name}\``)
    .split(/(`[^`]*`|\]\([^)]*\))/)
    .map((part, k) => (k % 2 === 1 ? part : part.replace(/</g, "&lt;")))
    .join("")
    .replace(errorCode, (all, code: string) =>
      isVariable(code) ? `\`${code}\`` : `[\`${code}\`](../errors.md#${code.toLowerCase()})`.replace(/^$/, all),
    );
}

const stated = /(?:(?:^|\s)Default|; default):? ((?:[^.`]|`[^`]*`|\.(?=\d))+)\./;
const marked = /(`[^`]+`|"[^"]+") \(default\)/;

/** The default of an option: a sentence that starts with it, a value that is marked, or the tag. */
export function defaultOf(doc: DocComment): string | undefined {
  return doc.default ?? stated.exec(doc.text)?.[1]?.trim() ?? marked.exec(doc.text)?.[1];
}

export const withoutDefault = (text: string): string =>
  text.replace(stated, (found) => (found.startsWith(";") ? "." : "")).trim();

/** What a number or a duration counts. */
export function unitOf(name: string, type: string): string {
  const numeric = /^(number|bigint)( \| undefined| \| null)?$/.test(type);
  if (numeric && /Ms$/.test(name)) return "ms";
  if (numeric && /(At|Until|Since)$/.test(name)) return "ms since 1970";
  if (numeric && /bytes$/i.test(name)) return "bytes";
  return "";
}
