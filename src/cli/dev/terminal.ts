import type { Clock } from "../../base/clock.ts";

/** Whether a user can watch and press keys. */
export const isInteractive = (): boolean => process.stdin.isTTY === true && process.stdout.isTTY === true;

/** Ten frames per second: no user reads faster, and a slow connection keeps up. */
const frameMs = 100;

/**
 * A part of the terminal that is redrawn in place: idle until `draw` is called, then at most ten frames per second.
 * `leave` keeps the last frame on the screen.
 */
export class LiveTerminal {
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

  /** Draws soon, together with other changes of the same moment. */
  draw(): void {
    if (this.#left || this.#cancel !== undefined) return;
    const waitMs = this.#drawnAt + frameMs - this.#clock.mono();
    if (waitMs <= 0) this.#paint();
    else this.#cancel = this.#clock.after(waitMs, () => this.#paint());
  }

  /** Draws the last frame; later draws do nothing. */
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
      this.#out.write("\u001b[2J\u001b[H"); // the terminal has rewrapped the lines, so their number is unknown
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

/** Calls back for each pressed key; Ctrl-C arrives as "q". The returned function restores the keyboard. */
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
