import { part } from "../store/value-keys.ts";

/** Longer numbers would change the order of the keys. No run has as many events. */
const width = 12;

/** A number in a key: keys have the order of their numbers. */
const padded = (number: number): string => String(number).padStart(width, "0");

/** The number at the end of a key. */
export const numberIn = (key: string): number => Number(key.slice(-width));

/** Where a world keeps what: the keys of its values. */
export class WorldKeys {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = part(prefix);
  }

  /** That there is such a run; once it has ended, its last state without data. */
  run(run: string): string {
    return this.#of("run", run);
  }

  runs(): string {
    return `${this.#of("run")}/`;
  }

  /** Entries of a run's log, each by the number of its first event. */
  events(run: string): string {
    return `${this.#of("event", run)}/`;
  }

  event(run: string, number: number): string {
    return this.events(run) + padded(number);
  }

  /** Which hook a token belongs to. */
  token(token: string): string {
    return this.#of("token", token);
  }

  /** The runs with events of this correlation. */
  correlations(id: string): string {
    return `${this.#of("correlation", id)}/`;
  }

  correlation(id: string, run: string): string {
    return this.correlations(id) + part(run);
  }

  /** All hooks, each under its id, with the run in its value. */
  hooks(): string {
    return `${this.#of("hook")}/`;
  }

  hook(id: string): string {
    return this.hooks() + part(id);
  }

  /** The names of a run's streams. */
  streams(run: string): string {
    return `${this.#of("stream", run)}/`;
  }

  stream(run: string, name: string): string {
    return this.streams(run) + part(name);
  }

  /** Entries of a stream, each by the number of its first chunk. */
  chunks(run: string, name: string): string {
    return `${this.#of("chunk", run, name)}/`;
  }

  chunk(run: string, name: string, number: number): string {
    return this.chunks(run, name) + padded(number);
  }

  /** With which deliveries of messages are signed. */
  secret(): string {
    return this.#of("secret");
  }

  #of(...parts: readonly string[]): string {
    return [this.#prefix, ...parts.map(part)].join("/");
  }
}
