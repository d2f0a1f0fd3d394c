import {
  type AgentInputItem,
  type SessionHistoryTransactionArgs,
  type SessionHistoryTransactionAwareSession,
  UserError,
} from "@openai/agents";
import { Transcript } from "../agent/transcript.ts";
import { fingerprint } from "../base/canonical.ts";
import type { TapeContext } from "../sdk/context.ts";
import { assertName } from "../sdk/validate.ts";

/**
 * A session of the framework as values of the tenant, read and written by operations of a run. Two runs that talk in one
 * session at the same time cannot mix: the second one ends with TAPE_VERSION_CONFLICT.
 *
 * @example
 * const result = await run(agent, text, { modelProvider, session: new TapeSession(tape, "chat-7") });
 */
export class TapeSession implements SessionHistoryTransactionAwareSession {
  readonly #id: string;
  readonly #items: Transcript<AgentInputItem>;
  /** Replay repeats operations by their place in the run; ids of the framework are new each time. */
  readonly #applied = new Map<string, string>();

  /** The context of the run, and the id of the session. */
  constructor(tape: TapeContext, id: string) {
    assertName("TapeSession", id);
    this.#id = id;
    this.#items = new Transcript(tape, `session/${id}`);
  }

  /** The id of the session. */
  async getSessionId(): Promise<string> {
    return this.#id;
  }

  /** The newest items, oldest first. */
  async getItems(limit?: number): Promise<AgentInputItem[]> {
    const items = structuredClone(await this.#items.items()) as AgentInputItem[];
    if (limit === undefined) return items;
    return limit <= 0 ? [] : items.slice(-limit);
  }

  /** Appends items. */
  async addItems(items: AgentInputItem[]): Promise<void> {
    await this.#items.append(structuredClone(items));
  }

  /** Removes the newest item and returns it. */
  async popItem(): Promise<AgentInputItem | undefined> {
    const [last] = await this.getItems(1);
    if (last !== undefined) await this.#items.replaceLast(1, []);
    return last;
  }

  /** Removes all items. */
  async clearSession(): Promise<void> {
    await this.#items.clear();
    this.#applied.clear();
  }

  /** Appends items, or replaces the last ones, once for each operation. */
  async applyHistoryTransaction({ operationId, transaction }: SessionHistoryTransactionArgs): Promise<void> {
    const print = fingerprint(transaction);
    const before = this.#applied.get(operationId);
    if (before === print) return;
    if (before !== undefined) throw new UserError("this operation was already applied with another transaction");
    if (transaction.type === "append_items") await this.addItems(transaction.items);
    else {
      const { expectedSuffix, replacement } = transaction;
      const suffix = await this.getItems(expectedSuffix.length);
      if (fingerprint(suffix) !== fingerprint(expectedSuffix)) {
        throw new UserError("the end of the session differs from the one that the transaction expects");
      }
      await this.#items.replaceLast(expectedSuffix.length, structuredClone(replacement));
    }
    this.#applied.set(operationId, print);
  }
}
