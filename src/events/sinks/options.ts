import { TapeError } from "../../model/errors.ts";

/** A sink takes an address, or a client that the program has already; both or none is an error. */
export function exactlyOne(sink: string, options: object, address: string, client: string): void {
  const given = [address, client].filter((name) => (options as Record<string, unknown>)[name] !== undefined);
  if (given.length === 1) return;
  throw new TapeError("TAPE_BAD_INPUT", `${sink}: give either ${address} or ${client}`, { field: address });
}

/** A whole number within bounds; `value` where it is not given. */
export function wholeOption(sink: string, name: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  const bounds = `a whole number from ${min} to ${max}`;
  throw new TapeError("TAPE_BAD_INPUT", `${sink}: ${name} is ${value}; write ${bounds}`, { field: name });
}

const maxName = 200;

/** A name of a stream, topic or subject, of the characters that the broker allows in it. */
export function nameOption(sink: string, name: string, value: string, allowed: RegExp): string {
  if (typeof value === "string" && value.length <= maxName && allowed.test(value)) return value;
  const shown = JSON.stringify(value)?.slice(0, maxName);
  throw new TapeError("TAPE_BAD_INPUT", `${sink}: ${name} ${shown} does not match ${allowed}`, { field: name });
}
