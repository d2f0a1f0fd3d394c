import { type Clock, systemClock } from "../../../base/clock.ts";

interface Chunk {
  readonly type: string;
  readonly delta?: string;
  readonly toolName?: string;
}

/** What a reader of the page sees, in this process: it follows the same events as a browser, and comes again like one. */
export class PageReader {
  /** The texts of the steps. */
  readonly steps: string[] = [];
  resets = 0;
  ended = false;
  readonly #left = new AbortController();
  readonly #following: Promise<void>;
  #last: string | undefined;

  constructor(url: string, clock: Pick<Clock, "sleep"> = systemClock) {
    this.#following = this.#follow(`${url}/events`, clock);
  }

  get text(): string {
    return this.steps.join(" ");
  }

  async close(): Promise<void> {
    this.#left.abort();
    await this.#following;
  }

  async #follow(url: string, clock: Pick<Clock, "sleep">): Promise<void> {
    while (!this.ended && !this.#left.signal.aborted) {
      await this.#read(url).catch(() => clock.sleep(50, this.#left.signal)); // the run may not exist yet
    }
  }

  async #read(url: string): Promise<void> {
    const headers: Record<string, string> = this.#last === undefined ? {} : { "last-event-id": this.#last };
    const response = await fetch(url, { headers, signal: this.#left.signal });
    let rest = "";
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      const events = `${rest}${piece}`.split("\n\n");
      rest = events.pop()!;
      for (const event of events) this.#event(event);
    }
  }

  #event(event: string): void {
    const [, id] = /^id: (.+)$/m.exec(event) ?? [];
    const [, data] = /^data: (.+)$/m.exec(event) ?? [];
    this.#last = id ?? this.#last;
    if (data === undefined || data === "[DONE]") return;
    this.#chunk(JSON.parse(data) as Chunk);
  }

  #chunk({ type, delta = "" }: Chunk): void {
    const last = this.steps.length - 1;
    if (type === "start-step") this.steps.push("");
    if (type === "text-delta") this.steps[last] += delta;
    if (type === "finish") this.ended = true;
    if (type !== "reset-step") return;
    this.resets++;
    this.steps[last] = "";
  }
}
