import type { Kind } from "./kinds.ts";

/** One change of one source file. The text must occur exactly once, otherwise the bug has rotted. */
export interface Patch {
  /** Below src/. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** A mistake that real systems make, planted in our own sources. */
export interface Bug {
  readonly name: string;
  /** What the patches change, for docs/planted-bugs.md. */
  readonly planted: string;
  /** Where the mistake is known from, or why an engineer would write it. */
  readonly why: string;
  readonly patches: readonly Patch[];
  /** The invariants of which at least one must break. A crash of the program does not count. */
  readonly detectedBy: readonly string[];
  /** The kind of plan in which the bug can show; default: any. */
  readonly kind?: Kind;
  /** The bug is detected within this many seeds. */
  readonly within: 50 | 200 | 500;
}

export function patched(text: string, { file, find, replace }: Patch): string {
  const parts = text.split(find);
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times, not once:\n${find}`);
  return parts.join(replace);
}
