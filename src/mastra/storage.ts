import type { StorageThreadType } from "@mastra/core/memory";
import {
  InMemoryDB,
  InMemoryMemory,
  MastraCompositeStore,
  MemoryStorage,
  type StorageListMessagesInput,
  type StorageListMessagesOutput,
  type StorageListThreadsInput,
  type StorageListThreadsOutput,
  type StorageResourceType,
} from "@mastra/core/storage";
import { perSite, siteOf } from "../agent/site.ts";
import { TapeError } from "../model/errors.ts";
import { current, currentSite } from "../sdk/current.ts";
import { part, type ValuesOf, valuesUnder } from "../store/value-keys.ts";
import { OpenThreads, storedValues, threadsUnder, type Values } from "./threads.ts";

/** Threads that one call lists: a run records them. */
const maxListed = 2_000;

const threadsAt = perSite(() => new OpenThreads(current().values));

/**
 * Mastra's storage as values of the tenant, for `Memory`: threads, messages and working memory. Inside a run they are read
 * and written by its operations, so that replay finds what it found before. Two runs that talk in one thread at the same
 * time cannot mix: the second one ends with TAPE_VERSION_CONFLICT.
 *
 * @example
 * const memory = new Memory({ storage: new TapeStorage(() => app) });
 */
export class TapeStorage extends MastraCompositeStore {
  /** `of`: for calls outside a run, and to list threads. */
  constructor(of?: () => ValuesOf) {
    super({ id: "tape", name: "Tape", disableInit: true, domains: { memory: new TapeMemory(of) } });
  }
}

type Memory = InMemoryMemory;
type SaveArgs = Parameters<Memory["saveMessages"]>[0];
type UpdateArgs = Parameters<Memory["updateMessages"]>[0];

/** Mastra's own memory does the work, on a copy of the threads that a call names: filters, pages and order are Mastra's. */
class TapeMemory extends MemoryStorage {
  override readonly supportsPartialThreadUpdate = true;
  readonly #of: (() => ValuesOf) | undefined;

  constructor(of: (() => ValuesOf) | undefined) {
    super();
    this.#of = of;
  }

  override async getThreadById(args: { threadId: string; resourceId?: string }): Promise<StorageThreadType | null> {
    return await this.#work([args.threadId], (memory) => memory.getThreadById(args));
  }

  override async saveThread(args: { thread: StorageThreadType }): Promise<StorageThreadType> {
    return await this.#work([args.thread.id], (memory) => memory.saveThread(args));
  }

  override async updateThread(args: Parameters<Memory["updateThread"]>[0]): Promise<StorageThreadType> {
    return await this.#work([args.id], (memory) => memory.updateThread(args));
  }

  override async deleteThread(args: { threadId: string }): Promise<void> {
    await this.#work([args.threadId], (memory) => memory.deleteThread(args));
  }

  override async listMessages(args: StorageListMessagesInput): Promise<StorageListMessagesOutput> {
    const included = args.include?.flatMap(({ threadId }) => threadId ?? []) ?? [];
    return await this.#work([args.threadId, included].flat(), async (memory, copy) => {
      assertKnown(args.include?.map(({ id }) => id) ?? [], copy);
      return await memory.listMessages(args);
    });
  }

  /** Of the threads that the run has read. */
  override async listMessagesById(args: { messageIds: string[] }): ReturnType<Memory["listMessagesById"]> {
    return await this.#work([], (memory) => memory.listMessagesById(args));
  }

  override async saveMessages(args: SaveArgs): ReturnType<Memory["saveMessages"]> {
    const ids = args.messages.map(({ threadId }) => threadId ?? "");
    if (ids.includes("")) throw new TapeError("TAPE_BAD_INPUT", "a message without a thread", { field: "threadId" });
    return await this.#work(ids, (memory) => memory.saveMessages(args));
  }

  override async updateMessages(args: UpdateArgs): ReturnType<Memory["updateMessages"]> {
    const ids = args.messages.flatMap(({ threadId }) => threadId ?? []);
    return await this.#work(ids, async (memory, copy) => {
      assertKnown(
        args.messages.map(({ id }) => id),
        copy,
      );
      return await memory.updateMessages(args);
    });
  }

  override async deleteMessages(messageIds: string[]): Promise<void> {
    await this.#work([], async (memory, copy) => {
      assertKnown(messageIds, copy);
      await memory.deleteMessages(messageIds);
    });
  }

  override async listThreads(args: StorageListThreadsInput): Promise<StorageListThreadsOutput> {
    const owner = args.filter?.resourceId;
    const all = inRun() ? await current().sample("threads", () => this.#threads(owner)) : await this.#threads(owner);
    const db = new InMemoryDB();
    for (const thread of all) db.threads.set(thread.id, thread);
    return await new InMemoryMemory({ db }).listThreads(args);
  }

  override async getResourceById({ resourceId }: { resourceId: string }): Promise<StorageResourceType | null> {
    const { value } = await this.#values().read(resourceOf(resourceId));
    return (value as StorageResourceType | undefined) ?? null;
  }

  override async saveResource({ resource }: { resource: StorageResourceType }): Promise<StorageResourceType> {
    const { version } = await this.#values().read(resourceOf(resource.id));
    await this.#values().put(resourceOf(resource.id), structuredClone(resource), version);
    return resource;
  }

  override async updateResource(args: Parameters<Memory["updateResource"]>[0]): Promise<StorageResourceType> {
    const db = new InMemoryDB();
    const { value, version } = await this.#values().read(resourceOf(args.resourceId));
    if (value != null) db.resources.set(args.resourceId, value as StorageResourceType);
    const resource = await new InMemoryMemory({ db }).updateResource(args);
    await this.#values().put(resourceOf(args.resourceId), structuredClone(resource), version);
    return resource;
  }

  override dangerouslyClearAll(): Promise<void> {
    return Promise.reject(new TapeError("TAPE_BAD_INPUT", "Tape does not clear all threads: delete each of them"));
  }

  async #work<T>(ids: readonly string[], task: (memory: Memory, copy: InMemoryDB) => Promise<T>): Promise<T> {
    const threads = inRun() ? threadsAt(siteOf(current())) : new OpenThreads(this.#values());
    return await threads.work(ids, (db) => task(new InMemoryMemory({ db }), db));
  }

  #values(): Values {
    return inRun() ? current().values : storedValues(this.#place());
  }

  #place(): ValuesOf {
    const of = this.#of?.();
    if (of !== undefined) return of;
    const why = "calls outside a run, and lists of threads, need the app: new TapeStorage(() => app)";
    throw new TapeError("TAPE_BAD_INPUT", why, { field: "of" });
  }

  async #threads(owner: string | undefined): Promise<StorageThreadType[]> {
    const found: StorageThreadType[] = [];
    for await (const { value } of valuesUnder(this.#place(), threadsUnder)) {
      const thread = value as StorageThreadType | null;
      if (thread === null || (owner !== undefined && thread.resourceId !== owner)) continue;
      found.push(thread);
      if (found.length > maxListed) {
        const why = `there are more than ${maxListed} threads: list those of one resource`;
        throw new TapeError("TAPE_TOO_LARGE", why, { max: maxListed });
      }
    }
    return found;
  }
}

const inRun = (): boolean => currentSite() !== undefined;
const resourceOf = (id: string): string => `mastra/resources/${part(id)}`;

/** Messages have no index of their own. */
function assertKnown(ids: readonly string[], { messages }: InMemoryDB): void {
  const unknown = ids.find((id) => !messages.has(id));
  if (unknown === undefined) return;
  const why = `message ${unknown} is in no thread that was read here: list the messages of its thread first`;
  throw new TapeError("TAPE_BAD_INPUT", why, { message: unknown });
}
