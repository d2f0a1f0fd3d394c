import { readFileSync } from "node:fs";
import { Child } from "../../../bench/events/child.ts";
import { systemClock } from "../../../src/base/clock.ts";
import type { ReceiverMessage, SinkEntry, Trouble } from "./receiver-messages.ts";

const program = new URL("receiver-process.ts", import.meta.url).href;

/** The receiver's process, its ledger, and what it has reported. */
export class ReceiverHandle {
  readonly #child: Child<ReceiverMessage>;
  readonly #file: string;
  readonly #held = new Map<number, (worker: string) => void>();
  #holds = 0;
  /** The highest token that it has seen. */
  highest = -1n;
  /** Requests that met each trouble. */
  readonly troubled: Partial<Record<Trouble, number>> = {};

  constructor(file: string) {
    this.#file = file;
    this.#child = new Child<ReceiverMessage>(program, [file], (message) => this.#note(message));
  }

  async listen(): Promise<string> {
    return (await this.#child.receive("listens")).url;
  }

  async behave(trouble: Trouble): Promise<void> {
    this.#child.ask({ trouble });
    await this.#child.receive("changed");
  }

  /** Holds the next request. Resolves with its sender; undefined: none came in time. */
  async hold(stage: "before" | "after", withinMs: number): Promise<{ hold: number; worker: string } | undefined> {
    const hold = ++this.#holds;
    const worker = await new Promise<string | undefined>((resolve) => {
      this.#held.set(hold, resolve);
      this.#child.ask({ hold, stage });
      systemClock.after(withinMs, () => resolve(undefined));
    });
    this.#held.delete(hold);
    if (worker !== undefined) return { hold, worker };
    this.release(hold);
    return undefined;
  }

  release(hold: number): void {
    this.#child.ask({ release: hold });
  }

  /** The ledger, from its file. */
  ledger(): SinkEntry[] {
    const lines = readFileSync(this.#file, "utf8").split("\n");
    return lines.slice(0, -1).map((line) => JSON.parse(line) as SinkEntry);
  }

  close(): Promise<void> {
    return this.#child.kill();
  }

  #note(message: ReceiverMessage): boolean {
    if (message.say === "held") this.#held.get(message.hold)?.(message.worker);
    else if (message.say === "term") this.highest = BigInt(message.token);
    else if (message.say === "troubled") this.troubled[message.trouble] = (this.troubled[message.trouble] ?? 0) + 1;
    else return false;
    return true;
  }
}
