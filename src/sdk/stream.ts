import type { Duration } from "../base/duration.ts";
import { TapeError } from "../model/errors.ts";
import type { StreamDefinition } from "./stream-types.ts";
import { assertKnownKeys, assertName, durationOrThrow } from "./validate.ts";

/** Options of a stream. */
export interface StreamOptions {
  /** How long chunks are kept after the end of the run. Default: as long as the run. */
  readonly retain?: Duration;
}

/**
 * Defines a stream: values that the bodies of a run write for readers while they run.
 *
 * @example
 * const tokens = stream<string>("tokens");
 * const answer = await tape.decide("answer", async (d) => {
 *   const out = d.stream(tokens);
 *   for await (const token of model(prompt, d.abortSignal)) await out.write(token);
 *   return out.text();
 * });
 */
export function stream<T = unknown>(name: string, options: StreamOptions = {}): StreamDefinition<T> {
  assertName("a stream", name);
  assertKnownKeys(`stream ${name}`, options, ["retain"]);
  const { retain } = options;
  const retainMs = retain === undefined ? undefined : Math.ceil(durationOrThrow(`stream ${name}`, "retain", retain, 1));
  return { name, retainMs };
}

/** The stream of `decision.emit`. */
export const emitted: StreamDefinition<unknown> = { name: "parts", retainMs: undefined };

/** The name of a stream, by its definition or as text. */
export function streamName(what: string, given: StreamDefinition<unknown> | string): string {
  const name: unknown = typeof given === "string" ? given : given?.name;
  assertName(`${what}: the stream`, name);
  return name;
}

/** Where no run's driver calls the body, nothing fences its chunks. */
export function noStreams(what: string): TapeError {
  return new TapeError("TAPE_BAD_INPUT", `${what} cannot stream: only steps, decisions and inline effects can`, {
    field: "stream",
  });
}
