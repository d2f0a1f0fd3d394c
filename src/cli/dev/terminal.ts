import type { Clock } from "../../base/clock.ts";

/** Whether a person looks and can press keys. */
export const isInteractive = (): boolean => process.stdin.isTTY === true && process.stdout.isTTY === true;

/** A frame in a tenth of a second: nobody reads faster, and a slow connection keeps up. */
const frameMs = 100;

/**
 * A part of the terminal that is drawn again and again, in place: idle until `draw` is called, then at most one frame in a
 * tenth of a second. `leave` leaves the last one where it is.
 */
export class Live {
  readonly #out: NodeJS.WriteStream;
  readonly #clock: Clock;
  readonly #frame: (columns: number, rows: number) => readonly string[];
  #drawn: readonly string[] = [];
  #size = "";
  #drawnAt = Number.NEGATIVE_INFINITY;
  #cancel: (() => void) | undefined;
  #left = false;

  constructor(out: NodeJS.WriteStream, clock: Clock, frame: (columns: number, rows: number) => readonly string[]) {
    this.#out = out;
    this.#clock = clock;
    this.#frame = frame;
  }

  /** Soon, together with other changes of the same moment. */
  draw(): void {
    if (this.#left || this.#cancel !== undefined) return;
    const restMs = this.#drawnAt + frameMs - this.#clock.mono();
    if (restMs <= 0) this.#paint();
    else this.#cancel = this.#clock.after(restMs, () => this.#paint());
  }

  /** The last frame, and no more after it. */
  leave(): void {
    if (this.#left) return;
    this.#cancel?.();
    this.#paint();
    this.#left = true;
  }

  #paint(): void {
    this.#cancel = undefined;
    this.#drawnAt = this.#clock.mono();
    const { columns, rows } = this.#out;
    if (this.#drawn.length > 0 && this.#size !== `${columns}x${rows}`) {
      this.#out.write("\u001b[2J\u001b[H"); // lines have broken elsewhere: nobody knows how many there are now
      this.#drawn = [];
    }
    this.#size = `${columns}x${rows}`;
    const lines = this.#frame(columns || 80, rows || 24);
    if (lines.length === this.#drawn.length && lines.every((line, k) => line === this.#drawn[k])) return;
    const up = this.#drawn.length === 0 ? "" : `\u001b[${this.#drawn.length}A`;
    this.#out.write(`${up}\r${lines.map((line) => `${line}\u001b[K\n`).join("")}\u001b[J`);
    this.#drawn = lines;
  }
}

const interrupt = "\u0003";

/** Single keys, as they are pressed; Ctrl-C comes as "q". The returned function gives the keyboard back. */
export function onKeys(pressed: (key: string) => void): () => void {
  const { stdin } = process;
  const listener = (data: Buffer): void => {
    for (const key of data.toString("utf8")) pressed(key === interrupt ? "q" : key.toLowerCase());
  };
  stdin.setRawMode(true);
  stdin.on("data", listener);
  stdin.resume();
  return () => {
    stdin.off("data", listener);
    stdin.setRawMode(false);
    stdin.pause();
  };
}
