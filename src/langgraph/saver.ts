import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  copyCheckpoint,
  getCheckpointId,
  maxChannelVersion,
  type PendingWrite,
  type SerializerProtocol,
  TASKS,
  WRITES_IDX_MAP,
} from "@langchain/langgraph-checkpoint";
import { type Random, systemRandom } from "../base/random.ts";
import { TapeError } from "../model/errors.ts";
import { deleteUnder, part, type ValuesOf, valuesUnder } from "../store/value-keys.ts";
import { updateValue } from "../store/values.ts";

/** A serialised value: its type by the serializer, and its text; bytes where it is no text. */
type TypedData = readonly [type: string, data: string | Uint8Array];

/** A checkpoint as it is stored. The values of its channels are stored once per version, under keys of their own. */
interface StoredCheckpoint {
  readonly thread: string;
  readonly ns: string;
  readonly id: string;
  readonly parent?: string;
  readonly checkpoint: TypedData;
  readonly metadata: TypedData;
  /** Channels that had a value. */
  readonly channels: readonly string[];
}

/** The writes of one task to one checkpoint, by their index: one value, so that a crash leaves all of a call or none. */
type StoredWrites = readonly (readonly [index: number, channel: string, value: TypedData])[];

/** Options of {@link TapeSaver}. */
export interface TapeSaverOptions {
  /** The serializer. Default: LangGraph's. */
  readonly serde?: SerializerProtocol;
  /** The first part of its keys; default `langgraph`. Savers with different ones do not see each other. */
  readonly prefix?: string;
  readonly random?: Random;
}

/**
 * LangGraph's checkpoints as values of a store: threads, time travel, interrupts and pending writes.
 *
 * LangGraph runs a node again that was interrupted by a crash. Where that must not happen, run the graph in a workflow.
 *
 * @example
 * const graph = createAgent({ model, tools, checkpointer: new TapeSaver(app) });
 */
export class TapeSaver extends BaseCheckpointSaver {
  readonly #of: ValuesOf;
  readonly #prefix: string;
  readonly #random: Random;

  /** Where the values are, and options. */
  constructor(of: ValuesOf, options: TapeSaverOptions = {}) {
    super(options.serde);
    this.#of = of;
    this.#prefix = part(options.prefix ?? "langgraph");
    this.#random = options.random ?? systemRandom;
  }

  /** One checkpoint with its pending writes. */
  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { thread_id: thread, checkpoint_ns: ns = "" } = config.configurable ?? {};
    if (thread === undefined) return undefined;
    const folder = this.#key("c", thread, ns);
    const id = getCheckpointId(config);
    const { store, tenant } = this.#of;
    const [found] = id
      ? [await store.read.value(tenant, `${folder}/${part(id)}`)]
      : await store.read.values(tenant, `${folder}/`, 1, undefined, "desc");
    if (found === undefined || found.deleted) return undefined;
    return this.#tupleOf(found.value as StoredCheckpoint);
  }

  /** Checkpoints, newest first. */
  override async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { thread_id: thread, checkpoint_ns: ns, checkpoint_id: only } = config.configurable ?? {};
    const before: string | undefined = options.before?.configurable?.checkpoint_id;
    const folder = this.#key("c", ...(thread === undefined ? [] : ns === undefined ? [thread] : [thread, ns]));
    const isOne = thread !== undefined && ns !== undefined;
    const range = isOne && before !== undefined ? { above: `${folder}/${part(before)}` } : {};
    let left = options.limit ?? Number.POSITIVE_INFINITY;
    for await (const { value } of valuesUnder(this.#of, `${folder}/`, { order: "desc", ...range })) {
      if (left <= 0) return;
      const found = value as StoredCheckpoint;
      if (ns !== undefined && found.ns !== ns) continue;
      if (only !== undefined && found.id !== only) continue;
      if (before !== undefined && found.id >= before) continue;
      const metadata = await this.#load(found.metadata);
      if (!Object.entries(options.filter ?? {}).every(([key, wanted]) => metadata[key] === wanted)) continue;
      left -= 1;
      yield this.#tupleOf(found);
    }
  }

  /** Stores a checkpoint. */
  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { thread, ns } = placeOf(config);
    const { channel_values: values, ...rest } = copyCheckpoint(checkpoint);
    const changed = Object.entries(newVersions).filter(([channel]) => Object.hasOwn(values, channel));
    await Promise.all(
      changed.map(async ([channel, version]) =>
        this.#put(this.#key("v", thread, ns, channel, String(version)), await this.#dump(values[channel])),
      ),
    );
    // Last: a checkpoint that is found has its channels.
    const parent = config.configurable?.checkpoint_id;
    const stored: StoredCheckpoint = {
      ...{ thread, ns, id: checkpoint.id, ...(parent === undefined ? {} : { parent }) },
      checkpoint: await this.#dump(rest),
      metadata: await this.#dump(metadata),
      channels: Object.keys(values),
    };
    await this.#put(this.#key("c", thread, ns, checkpoint.id), stored);
    return configOf(thread, ns, checkpoint.id);
  }

  /** Stores writes of a task that has not finished. */
  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { thread, ns } = placeOf(config);
    const id = config.configurable?.checkpoint_id;
    if (id === undefined) throw new TapeError("TAPE_BAD_INPUT", "configurable.checkpoint_id is missing", {});
    const given = await Promise.all(
      writes.map(
        async ([channel, value], k) => [WRITES_IDX_MAP[channel] ?? k, channel, await this.#dump(value)] as const,
      ),
    );
    await updateValue(this.#of.store, this.#of.tenant, this.#key("w", thread, ns, id, taskId), (current) => {
      const all = new Map(
        ((current as { writes: StoredWrites } | undefined)?.writes ?? []).map((one) => [one[0], one]),
      );
      // A task's own writes are final; its errors and interrupts are replaced.
      for (const one of given) if (one[0] < 0 || !all.has(one[0])) all.set(one[0], one);
      return { task: taskId, writes: [...all.values()].sort(([a], [b]) => a - b) };
    });
  }

  /** Deletes a thread with its checkpoints. */
  override async deleteThread(threadId: string): Promise<void> {
    // Checkpoints first: none is found whose channels are gone.
    for (const kind of ["c", "w", "v"]) await deleteUnder(this.#of, `${this.#key(kind, threadId)}/`);
  }

  /** Larger by one, with a random fraction: two branches of a thread have different versions of a channel. */
  override getNextVersion(current: number | undefined): number {
    return Math.floor(Number(current ?? 0)) + 1 + this.#random.int(2 ** 20) / 2 ** 20;
  }

  #key(kind: string, ...parts: readonly string[]): string {
    return [this.#prefix, kind, ...parts.map(part)].join("/");
  }

  async #put(key: string, value: unknown): Promise<void> {
    await this.#of.store.intake.putValue(this.#of.tenant, key, value, "unconditional");
  }

  async #dump(value: unknown): Promise<TypedData> {
    const [type, data] = await this.serde.dumpsTyped(value);
    return [type, type === "json" ? new TextDecoder().decode(data) : data];
  }

  #load([type, data]: TypedData) {
    return this.serde.loadsTyped(type, data);
  }

  async #tupleOf({ thread, ns, id, parent, ...stored }: StoredCheckpoint): Promise<CheckpointTuple> {
    const [rest, metadata, pendingWrites] = await Promise.all([
      this.#load(stored.checkpoint),
      this.#load(stored.metadata),
      this.#writes(thread, ns, id),
    ]);
    const channels = await Promise.all(
      stored.channels.map(async (channel) => {
        const key = this.#key("v", thread, ns, channel, String(rest.channel_versions[channel]));
        const found = await this.#of.store.read.value(this.#of.tenant, key);
        return found === undefined || found.deleted
          ? []
          : [[channel, await this.#load(found.value as TypedData)] as const];
      }),
    );
    const checkpoint: Checkpoint = { ...rest, channel_values: Object.fromEntries(channels.flat()) };
    if (parent !== undefined && checkpoint.v < 4) await this.#migrateSends(checkpoint, thread, ns, parent);
    const tuple = { config: configOf(thread, ns, id), checkpoint, metadata, pendingWrites };
    return parent === undefined ? tuple : { ...tuple, parentConfig: configOf(thread, ns, parent) };
  }

  async #writes(thread: string, ns: string, id: string): Promise<CheckpointPendingWrite[]> {
    const found: Promise<CheckpointPendingWrite>[] = [];
    for await (const { value } of valuesUnder(this.#of, `${this.#key("w", thread, ns, id)}/`)) {
      const { task, writes } = value as { task: string; writes: StoredWrites };
      for (const [, channel, typed] of writes) found.push(this.#load(typed).then((data) => [task, channel, data]));
    }
    return Promise.all(found);
  }

  /** Before version 4 of its format, a checkpoint found what was sent among the writes of its parent. */
  async #migrateSends(checkpoint: Checkpoint, thread: string, ns: string, parent: string): Promise<void> {
    const sends = (await this.#writes(thread, ns, parent)).filter(([, channel]) => channel === TASKS);
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_values[TASKS] = sends.map(([, , value]) => value);
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }
}

function placeOf(config: RunnableConfig): { readonly thread: string; readonly ns: string } {
  const { thread_id: thread, checkpoint_ns: ns = "" } = config.configurable ?? {};
  if (typeof thread !== "string" || thread === "") {
    throw new TapeError(
      "TAPE_BAD_INPUT",
      'configurable.thread_id is missing: { configurable: { thread_id: "…" } }',
      {},
    );
  }
  return { thread, ns };
}

const configOf = (thread: string, ns: string, id: string): RunnableConfig => ({
  configurable: { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id },
});
