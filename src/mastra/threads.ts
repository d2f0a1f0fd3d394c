import { isDeepStrictEqual } from "node:util";
import type { StorageThreadType } from "@mastra/core/memory";
import { InMemoryDB, type StorageMessageType } from "@mastra/core/storage";
import { Transcript } from "../agent/transcript.ts";
import type { ValuesContext } from "../sdk/context.ts";
import { part, type ValuesOf } from "../store/value-keys.ts";

/** How values are read and written: by operations of a run, or by a store. */
export type Values = Pick<ValuesContext, "read" | "put">;

type Thread = StorageThreadType;
type Message = StorageMessageType;

interface OpenThread {
  head: { readonly version: number; readonly value: Thread | undefined };
  readonly messages: Transcript<Message>;
}

export const threadsUnder = "mastra/threads/";

/** Values outside a run. */
export const storedValues = ({ store, tenant }: ValuesOf): Values => ({
  read: async (key) => {
    const found = await store.read.value(tenant, key);
    return { version: found?.version ?? 0, value: found?.deleted === true ? undefined : found?.value };
  },
  put: async (key, value, version) => (await store.intake.putValue(tenant, key, value, { version })).version,
});

/**
 * The threads that a run has read: `mastra/threads/<id>`, and their messages in pages `mastra/messages/<id>/<page>`. One
 * call at a time works on them, so that calls which Mastra makes concurrently are operations in one order.
 */
export class OpenThreads {
  readonly #values: Values;
  readonly #open = new Map<string, OpenThread>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(values: Values) {
    this.#values = values;
  }

  /** Work on a copy in memory; what it has changed is stored. */
  async work<T>(ids: readonly string[], task: (copy: InMemoryDB) => Promise<T>): Promise<T> {
    const turn = this.#last.then(async () => {
      for (const id of ids) await this.#thread(id);
      const copy = await this.#copy();
      const result = await task(copy);
      await this.#store(copy);
      return result;
    });
    this.#last = turn.catch(() => {});
    return await turn;
  }

  async #thread(id: string): Promise<void> {
    if (this.#open.has(id)) return;
    const { version, value } = await this.#values.read(headOf(id));
    const head = { version, value: (value ?? undefined) as Thread | undefined };
    const messages = new Transcript<Message>({ values: this.#values }, `mastra/messages/${part(id)}`);
    this.#open.set(id, { head, messages });
  }

  async #copy(): Promise<InMemoryDB> {
    const copy = new InMemoryDB();
    for (const [id, { head, messages }] of this.#open) {
      if (head.value !== undefined) copy.threads.set(id, structuredClone(head.value));
      for (const message of await messages.items()) copy.messages.set(message.id, structuredClone(message));
    }
    return copy;
  }

  async #store(copy: InMemoryDB): Promise<void> {
    for (const [id, thread] of this.#open) {
      const { head, messages } = thread;
      const after = [...copy.messages.values()].filter((message) => message.thread_id === id);
      const before = await messages.items();
      const changed = before.findIndex((message, k) => !isDeepStrictEqual(message, after[k]));
      const same = changed === -1 ? before.length : changed;
      if (same < before.length || same < after.length) {
        await messages.replaceLast(before.length - same, structuredClone(after.slice(same)));
      }
      const value = structuredClone(copy.threads.get(id));
      if (isDeepStrictEqual(value, head.value)) continue;
      thread.head = { version: await this.#values.put(headOf(id), value ?? null, head.version), value };
    }
  }
}

const headOf = (id: string): string => `${threadsUnder}${part(id)}`;
