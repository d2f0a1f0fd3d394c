import { sizeOf } from "../../base/codec.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";

/** Checks of single values. Types are not enough: callers may be JavaScript. */

export function checkName(what: string, text: unknown, limits: Limits): asserts text is string {
  if (typeof text !== "string" || text.length === 0) {
    throw new TapeError("TAPE_BAD_INPUT", `${what} must be a non-empty string`, { field: what });
  }
  checkText(what, text, limits);
}

/** Short text of an operator or a program; it may be empty. */
export function checkText(what: string, text: unknown, limits: Limits): asserts text is string {
  if (typeof text !== "string") throw new TapeError("TAPE_BAD_INPUT", `${what} must be a string`, { field: what });
  if (text.length > limits.nameLength) {
    const message = `${what} has ${text.length} characters, at most ${limits.nameLength} are allowed`;
    throw new TapeError("TAPE_TOO_LARGE", message, { field: what, limit: "nameLength" });
  }
  checkLength(what, text);
}

/** Text that is stored verbatim, as long as a payload may be. */
export function checkStored(what: string, text: unknown, limits: Limits): asserts text is string {
  if (typeof text !== "string") throw new TapeError("TAPE_BAD_INPUT", `${what} must be a string`, { field: what });
  checkLength(what, text);
  checkSize(what, text, limits);
}

/** PostgreSQL text holds neither, and a text must mean the same on every store. */
function checkLength(what: string, text: string): void {
  if (text.includes("\0") || !text.isWellFormed()) {
    throw new TapeError("TAPE_BAD_INPUT", `${what} contains a NUL or a lone surrogate`, { field: what });
  }
}

export function checkObject(what: string, value: unknown): asserts value is object {
  if (typeof value === "object" && value !== null) return;
  throw new TapeError("TAPE_BAD_INPUT", `${what} must be an object`, { field: what });
}

export function checkList(what: string, value: unknown): asserts value is readonly unknown[] {
  if (!Array.isArray(value)) throw new TapeError("TAPE_BAD_INPUT", `${what} must be an array`, { field: what });
}

export function checkFlag(what: string, value: unknown): asserts value is boolean {
  if (typeof value !== "boolean") {
    throw new TapeError("TAPE_BAD_INPUT", `${what} must be true or false`, { field: what });
  }
}

export function checkWhole(what: string, value: unknown, min = 0): asserts value is number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < min) {
    throw new TapeError("TAPE_BAD_INPUT", `${what} must be a whole number of at least ${min}`, { field: what });
  }
}

export function checkSize(what: string, text: string, limits: Limits): void {
  // Length first: counting bytes of a surely small text would slow down every append.
  if (text.length * 3 <= limits.payloadBytes || sizeOf(text) <= limits.payloadBytes) return;
  const message = `${what} takes ${sizeOf(text)} bytes, at most ${limits.payloadBytes} are allowed`;
  throw new TapeError("TAPE_TOO_LARGE", message, { field: what, limit: "payloadBytes" });
}
