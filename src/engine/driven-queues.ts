import type { QueueDefinition } from "../sdk/queue.ts";
import type { FindRequest } from "../store/contract/store.ts";

/** The runs of each queue that a process drives: how many more it takes. */
export class DrivenQueues {
  readonly #definitions: ReadonlyMap<string, QueueDefinition>;
  readonly #driven = new Map<string, number>();

  constructor(definitions: ReadonlyMap<string, QueueDefinition> = new Map()) {
    this.#definitions = definitions;
  }

  get names(): readonly string[] {
    return [...this.#definitions.keys()];
  }

  /** The queues of a find, with at most `room` runs each. */
  rooms(room: number): Pick<FindRequest, "queues"> {
    if (this.#definitions.size === 0) return {};
    const queues = [...this.#definitions].map(([name, { spec }]) => {
      const own = (spec.perWorker ?? Number.MAX_SAFE_INTEGER) - (this.#driven.get(name) ?? 0);
      return { name, room: Math.max(0, Math.min(room, own)) };
    });
    return { queues };
  }

  enter(queue: string | undefined): void {
    if (queue) this.#driven.set(queue, (this.#driven.get(queue) ?? 0) + 1);
  }

  /** True: the run had a queue, so a slot may be free. */
  leave(queue: string | undefined): boolean {
    if (!queue) return false;
    this.#driven.set(queue, this.#driven.get(queue)! - 1);
    return true;
  }
}
