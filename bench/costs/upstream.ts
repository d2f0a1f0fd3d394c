import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "../../src/base/clock.ts";

/** One request of a worker. */
export interface Seen {
  /** A point, `call` or `compensate`. */
  readonly what: string;
  readonly by: string;
  readonly atMs: number;
}

/**
 * The upstream of the workers: an HTTP server with its own list of what happened. It deduplicates nothing; what it has
 * applied twice has happened twice, unless the effect says that the upstream deduplicates by key.
 */
export class Upstream {
  readonly seen: Seen[] = [];
  readonly applied: { readonly what: string; readonly key: string }[] = [];
  readonly #server = createServer((request, response) => this.#answer(new URL(request.url ?? "/", this.url), response));
  readonly #held: { readonly what: string; readonly by: string; readonly then: () => void | Promise<void> }[] = [];
  #changed = (): void => {};

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  get url(): string {
    const address = this.#server.address() as AddressInfo | null;
    return `http://127.0.0.1:${address?.port ?? 0}`;
  }

  /** The next such request is not answered before `then` has ended; a request of a killed process never is. */
  hold(what: string, by: string, then: () => void | Promise<void>): void {
    this.#held.push({ what, by, then });
  }

  /** The time of the first such request after `fromMs`. */
  async wait(what: string, by: string, fromMs = 0): Promise<number> {
    for (;;) {
      const found = this.seen.find((one) => one.what === what && one.by === by && one.atMs > fromMs);
      if (found !== undefined) return found.atMs;
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  count(what: string): number {
    return this.seen.filter((one) => one.what === what).length;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer({ pathname, searchParams }: URL, response: ServerResponse): Promise<void> {
    const of = (name: string): string => searchParams.get(name) ?? "";
    const [what, key, by] = [of("what") || of("point"), of("key"), of("by")];
    if (pathname === "/find") {
      response.end(String(this.applied.some((one) => one.what === what && one.key === key)));
      return;
    }
    if (pathname === "/apply") this.applied.push({ what, key });
    this.seen.push({ what, by, atMs: systemClock.mono() });
    this.#changed();
    const at = this.#held.findIndex((one) => one.what === what && one.by === by);
    if (at >= 0) await this.#held.splice(at, 1)[0]!.then();
    response.end("ok");
  }
}
