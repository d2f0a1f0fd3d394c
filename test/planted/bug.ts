import type { Kind } from "./kinds.ts";

/** One change of one source file; the text must be there exactly once, or the bug has rotted. */
export interface Patch {
  /** Below src/. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** A mistake that real systems make, made in ours. */
export interface Bug {
  readonly name: string;
  /** What was changed, for docs/planted-bugs.md. */
  readonly planted: string;
  /** Where the world has seen it, or why somebody would write it so. */
  readonly why: string;
  readonly patches: readonly Patch[];
  /** The checkers that must tell of it; any of them will do. A crash of the program does not count. */
  readonly tellers: readonly string[];
  /** Where it can show; default: anywhere. */
  readonly kind?: Kind;
  /** It is found by then. */
  readonly within: 50 | 200 | 500;
}

export function patched(text: string, { file, find, replace }: Patch): string {
  const parts = text.split(find);
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times, not once:\n${find}`);
  return parts.join(replace);
}
