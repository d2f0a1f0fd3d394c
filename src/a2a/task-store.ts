import { type ListTasksRequest, type ListTasksResponse, type Message, Role, Task, TaskState } from "@a2a-js/sdk";
import { RequestMalformedError, UnsupportedOperationError } from "@a2a-js/sdk/errors";
import type { ServerCallContext, TaskStore } from "@a2a-js/sdk/server";
import { isTapeError, TapeError } from "../model/errors.ts";
import { deleteKey, type ValuesOf, valuesUnder } from "../store/value-keys.ts";
import { updateValue } from "../store/values.ts";
import { isTerminal } from "./messages.ts";
import { addMessages, newMessages, project, type RunPlace, taskOf } from "./projection.ts";
import { checkedScope, type TaskScope, type TaskScopeOptions } from "./scope.ts";

/** A task as it is stored, in the protocol's JSON. `run`: it is a run, and the journal decides its status. */
interface StoredTask {
  readonly task: unknown;
  readonly run?: RunPlace;
}

/** A task, and how far it has followed its run. */
export interface TaskView {
  task: Task;
  run?: RunPlace;
}

/** What a list sorts and filters by. */
interface Head {
  readonly id: string;
  readonly key: string;
  readonly contextId: string;
  readonly state: TaskState | undefined;
  readonly timestamp: string;
}

/** Tasks of one owner that a list reads. */
const maxListed = 10_000;
/** The newest runs of the owner, whose tasks a list also finds if a process died before it stored them. */
const maxAdopted = 100;

/**
 * Tasks of the Agent2Agent protocol as values of a store. The status of a task that is a run comes from its journal, in
 * every process. Tasks of other executors are stored as they are saved; concurrent changes are merged.
 *
 * @example
 * new DefaultRequestHandler(card, new TapeTaskStore(app), myExecutor);
 */
export class TapeTaskStore implements TaskStore {
  readonly #of: ValuesOf;
  readonly #scope: TaskScope;
  /** What a task was when it was read. */
  readonly #read = new WeakMap<Task, Task>();

  /** Where the values are, and whose they are. */
  constructor(of: ValuesOf, options: TaskScopeOptions = {}) {
    this.#of = of;
    this.#scope = checkedScope("TapeTaskStore", options);
  }

  /** One task by its id. */
  async load(taskId: string, context: ServerCallContext): Promise<Task | undefined> {
    const task = (await this.view(taskId, context))?.task;
    if (task !== undefined) this.#read.set(task, structuredClone(task));
    return task;
  }

  /** The task, and its place in the run. */
  view(taskId: string, context: ServerCallContext): Promise<TaskView | undefined> {
    return this.#current(this.#scope.key("tasks", context, taskId), taskId, context);
  }

  /** Stores a task. */
  async save(task: Task, context: ServerCallContext): Promise<void> {
    const key = this.#scope.key("tasks", context, task.id);
    const found = await this.#current(key, task.id, context);
    if (found?.run === undefined) return this.#merge(key, task);
    const added = newMessages(found.task, task.history).filter(({ role }) => role === Role.ROLE_USER);
    const metadata = metadataOf(found.task, task);
    if (added.length > 0) assertWaiting(found.task);
    if (added.length === 0 && sameJson(metadata, found.task.metadata)) return;
    await this.#append(key, found, added, metadata);
  }

  /** A page of tasks. */
  async list(request: ListTasksRequest, context: ServerCallContext): Promise<ListTasksResponse> {
    const { contextId, status, pageSize = 50, pageToken, statusTimestampAfter, includeArtifacts = false } = request;
    const after = statusTimestampAfter ? Date.parse(statusTimestampAfter) : undefined;
    const fits = (head: Head): boolean =>
      (!contextId || head.contextId === contextId) &&
      (!status || head.state === status) &&
      (after === undefined || Date.parse(head.timestamp) > after);
    const all = (await this.#heads(context)).filter(fits).sort(newestFirst);
    const cursor = pageToken ? cursorOf(pageToken) : undefined;
    const rest = cursor === undefined ? all : all.filter((head) => newestFirst(cursor, head) < 0);
    const page = rest.slice(0, pageSize);
    const tasks: Task[] = [];
    for (const { key, id } of page) {
      const found = await this.#current(key, id, context);
      if (found !== undefined) tasks.push(includeArtifacts ? found.task : { ...found.task, artifacts: [] });
    }
    const nextPageToken = rest.length > page.length ? tokenOf(page.at(-1)!) : "";
    return { tasks, nextPageToken, pageSize, totalSize: all.length };
  }

  /** Removes a task that has ended, with its push configurations. The run stays. false: there is no such task. */
  async remove(taskId: string, context: ServerCallContext): Promise<boolean> {
    const key = this.#scope.key("tasks", context, taskId);
    const found = await this.#current(key, taskId, context);
    if (found === undefined) return false;
    if (!isTerminal(found.task.status?.state)) throw new UnsupportedOperationError(`Task ${taskId} has not ended`);
    await deleteKey(this.#of, this.#scope.key("push", context, taskId));
    await deleteKey(this.#of, key);
    return true;
  }

  /** The task, brought up to date with its run. A run whose task was never stored is found by its id. */
  async #current(key: string, taskId: string, context: ServerCallContext): Promise<TaskView | undefined> {
    const { store, tenant } = this.#of;
    const value = await store.read.value(tenant, key);
    if (value?.deleted === true) return undefined;
    const found = value === undefined ? await this.#adopted(taskId, context) : decoded(value.value);
    if (found?.run === undefined || isTerminal(found.task.status?.state)) return found;
    const changed = await project(this.#of, found.task, found.run);
    if (changed || value === undefined) await this.#keep(key, found, value?.version ?? 0);
    return found;
  }

  async #adopted(taskId: string, context: ServerCallContext): Promise<TaskView | undefined> {
    const { store, tenant } = this.#of;
    const id = this.#scope.runOf(taskId);
    const run = await store.read.run(tenant, id);
    if (run === undefined || run.labels[this.#scope.prefix] !== this.#scope.of(context)) return undefined;
    const [created] = await store.read.journal(tenant, { run: id }, { limit: 1 });
    if (created?.kind !== "run.created") return undefined;
    return { task: taskOf(created), run: { id, seq: created.seq, at: created.at, gates: [] } };
  }

  /** A faster reader has stored the same, or more. A task that fits into no value is computed at each read. */
  async #keep(key: string, { task, run }: TaskView, version: number): Promise<void> {
    const stored: StoredTask = { task: Task.toJSON(task), ...(run && { run }) };
    try {
      await this.#of.store.intake.putValue(this.#of.tenant, key, stored, { version });
    } catch (error) {
      if (!isTapeError(error, "TAPE_VERSION_CONFLICT") && !isTapeError(error, "TAPE_TOO_LARGE")) throw error;
    }
  }

  async #append(key: string, found: TaskView, added: readonly Message[], metadata: Task["metadata"]): Promise<void> {
    await updateValue(this.#of.store, this.#of.tenant, key, (current): StoredTask => {
      const { task, run } = current === undefined ? found : decoded(current);
      addMessages(task, added);
      return { task: Task.toJSON({ ...task, metadata }), ...(run && { run }) };
    });
  }

  /** Of what changed since this process has read the task, nothing is lost; an end is final. */
  async #merge(key: string, task: Task): Promise<void> {
    const base = this.#read.get(task);
    const { store, tenant } = this.#of;
    await updateValue(store, tenant, key, (current): StoredTask => {
      const now = current === undefined ? undefined : decoded(current).task;
      const isOwn = now === undefined || base === undefined || sameJson(Task.toJSON(now), Task.toJSON(base));
      return { task: Task.toJSON(isOwn ? task : merged(base, now, task)) };
    });
    this.#read.set(task, structuredClone(task));
  }

  async #heads(context: ServerCallContext): Promise<Head[]> {
    const { store, tenant } = this.#of;
    const heads = new Map<string, Head>();
    const add = async (key: string, given?: TaskView, id = given!.task.id): Promise<void> => {
      const isOpen = given === undefined || (given.run !== undefined && !isTerminal(given.task.status?.state));
      const task = isOpen ? (await this.#current(key, id, context))?.task : given.task;
      if (task !== undefined) heads.set(key, headOf(key, task));
      if (heads.size > maxListed) {
        const why = `a list reads at most ${maxListed} tasks of one owner: remove ended ones with remove(taskId, context)`;
        throw new TapeError("TAPE_TOO_LARGE", why, { field: "tasks" });
      }
    };
    const prefix = this.#scope.key("tasks", context, "");
    for await (const { key, value } of valuesUnder(this.#of, prefix)) await add(key, decoded(value));
    const label = { key: this.#scope.prefix, value: this.#scope.of(context) };
    for (const { id } of await store.read.runs(tenant, { label, limit: maxAdopted })) {
      const taskId = id.slice(this.#scope.prefix.length + 1);
      const key = `${prefix}${taskId}`;
      if (!heads.has(key)) await add(key, undefined, taskId);
    }
    return [...heads.values()];
  }
}

function decoded(value: unknown): TaskView {
  const { task, run } = value as StoredTask;
  return { task: Task.fromJSON(task), ...(run && { run: { ...run } }) };
}

function assertWaiting({ id, status }: Task): void {
  if (status?.state === TaskState.TASK_STATE_INPUT_REQUIRED) return;
  throw new UnsupportedOperationError(`Task ${id} waits for no message`);
}

/** What this process changed since `base`, on top of what others have stored meanwhile. */
function merged(base: Task, now: Task, task: Task): Task {
  const result = { ...now, history: [...now.history], artifacts: [...now.artifacts] };
  const isEnd = isTerminal(now.status?.state);
  if (!isEnd && !sameJson(task.status, base.status)) result.status = task.status;
  const before = new Map(base.artifacts.map((one) => [one.artifactId, one]));
  for (const one of task.artifacts) {
    if (sameJson(before.get(one.artifactId), one)) continue;
    const k = result.artifacts.findIndex(({ artifactId }) => artifactId === one.artifactId);
    result.artifacts.splice(k < 0 ? result.artifacts.length : k, k < 0 ? 0 : 1, one);
  }
  addMessages(result, task.history);
  return { ...result, metadata: metadataOf(now, task) };
}

const metadataOf = (now: Task, task: Task): Task["metadata"] =>
  now.metadata === undefined && task.metadata === undefined ? undefined : { ...now.metadata, ...task.metadata };

const headOf = (key: string, { id, contextId, status }: Task): Head => ({
  ...{ id, key, contextId, state: status?.state, timestamp: status?.timestamp ?? "" },
});

type Place = Pick<Head, "timestamp" | "id">;

const newestFirst = (a: Place, b: Place): number => b.timestamp.localeCompare(a.timestamp) || b.id.localeCompare(a.id);

const tokenOf = ({ timestamp, id }: Place): string => Buffer.from(`${timestamp}|${id}`).toString("base64");

function cursorOf(token: string): Place {
  const [timestamp, ...id] = Buffer.from(token, "base64").toString("utf8").split("|");
  if (id.length === 0) throw new RequestMalformedError("Invalid page token format.");
  return { timestamp: timestamp!, id: id.join("|") };
}

const sameJson = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
