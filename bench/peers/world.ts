import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * The fake world: a file with one line per call that reached it, written before the response is sent. It accepts every
 * call, however often it is repeated, and reports what it has seen.
 */
export class World {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  async call(run: string, step: string, ms: number): Promise<string> {
    appendFileSync(this.#file, `${run} ${step}\n`);
    if (ms > 0) await sleep(ms);
    return `${step} of ${run}`;
  }

  has(run: string, step: string): boolean {
    return this.#text().includes(`${run} ${step}\n`);
  }

  /** How often each call was seen, by step and run. */
  seen(): Map<string, Map<string, number>> {
    const steps = new Map<string, Map<string, number>>();
    for (const line of this.#text().split("\n")) {
      const [run, step] = line.split(" ");
      if (run === undefined || step === undefined) continue;
      const runs = steps.get(step) ?? new Map<string, number>();
      steps.set(step, runs.set(run, (runs.get(run) ?? 0) + 1));
    }
    return steps;
  }

  #text(): string {
    return existsSync(this.#file) ? readFileSync(this.#file, "utf8") : "";
  }
}
