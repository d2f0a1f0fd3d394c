import { perSite, siteOf } from "../agent/site.ts";
import { current } from "../sdk/current.ts";

/** What LangGraph writes into the metadata of everything that a task calls. */
interface TaskMetadata {
  readonly langgraph_checkpoint_ns?: string;
  readonly langgraph_path?: readonly unknown[];
}

/** What a model or tool receives of the callbacks: the metadata of its task, and the handlers. */
export interface Caller {
  readonly metadata?: Record<string, unknown>;
  readonly handlers?: readonly unknown[];
}

/**
 * Names the tasks of a graph, the same in each replay. LangGraph's own name of a task, its `checkpoint_ns`, ends with a
 * random id; here it ends with the number of the `Send` that started it, if one did. As a callback it learns of every
 * task before its first call, also of those that only contain other graphs.
 */
export class TaskNames {
  readonly name = "tape-tasks";
  readonly awaitHandlers = true;
  readonly #sends = new Map<string, string>();

  handleChainStart(
    _: unknown,
    __: unknown,
    ___: string,
    ____?: string,
    _____?: string[],
    metadata?: TaskMetadata,
  ): void {
    this.learn(metadata);
  }

  learn({ langgraph_checkpoint_ns: ns, langgraph_path: path = [] }: TaskMetadata = {}): void {
    const [kind, ...numbers] = path;
    if (ns === undefined || kind !== "__pregel_push" || this.#sends.has(ns)) return;
    // A task that a function started has the path of its caller, and its number.
    this.#sends.set(ns, `:${numbers.filter((part) => typeof part === "number").join(".")}`);
  }

  nameOf(ns: string): string {
    const parts = ns.split("|");
    return parts
      .map((part, k) => part.split(":", 1)[0] + (this.#sends.get(parts.slice(0, k + 1).join("|")) ?? ""))
      .join("|");
  }
}

/**
 * Runs a model call in the lane of its task: parallel tasks cannot be given each other's answers by a replay. Calls that one
 * task makes concurrently get numbers in the order in which it makes them.
 */
export async function inTaskLane<T>({ metadata = {}, handlers = [] }: Caller, work: () => Promise<T>): Promise<T> {
  const { langgraph_checkpoint_ns: ns } = metadata as TaskMetadata;
  const names = handlers.find((handler) => handler instanceof TaskNames) ?? new TaskNames();
  names.learn(metadata);
  const name = names.nameOf(ns ?? "") || "models";
  const tape = current();
  const busy = busyLanes(siteOf(tape));
  let lane = name;
  for (let k = 2; busy.has(lane); k++) lane = `${name} ${k}`;
  busy.add(lane);
  try {
    return await tape.lane(lane, work);
  } finally {
    busy.delete(lane);
  }
}

const busyLanes = perSite(() => new Set<string>());
