import type { Clock } from "../../src/base/clock.ts";

/** A call that the fake makes for a task. */
export interface TaskCall {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface FakeCloudTasksOptions {
  readonly clock: Clock;
  /** Delivers a call and returns the status of its response; throws if the host cannot be reached. */
  readonly dispatch: (call: TaskCall) => Promise<number>;
  /** How far the service's clock is ahead of the machine's. */
  readonly clockOffMs?: number;
  /** What happens to a request to create a task. `lost`: it is stored, and the response is lost. */
  readonly fault?: () => "refuse" | "lost" | undefined;
  readonly maxBackoffMs?: number;
  /** Tasks wait for `release`, whatever their time: for tests in real time. */
  readonly held?: boolean;
}

interface Task {
  readonly name: string;
  readonly at: number;
  readonly call: TaskCall;
  attempts: number;
  state: "pending" | "calling" | "done";
  doneAt: number;
}

const dayMs = 86_400_000;
/** Node fires a timer of more than 2³¹ − 1 ms, 25 days, at once. */
const maxTimerMs = 20 * dayMs;

/**
 * A FAKE of the REST API v2 of Google Cloud Tasks, written from its published description; Google has no emulator of it.
 * It knows creation by name, 409 for pending and executed names, schedule times, retries and the headers of a call. It
 * proves nothing about the real service's timing.
 */
export class FakeCloudTasks {
  readonly #options: FakeCloudTasksOptions;
  readonly #tasks = new Map<string, Task>();
  /** Requests to create a task, and calls. */
  created = 0;
  calls = 0;
  conflicts = 0;
  /** Conflicts with tasks that were called already. */
  lateConflicts = 0;

  constructor(options: FakeCloudTasksOptions) {
    this.#options = options;
  }

  /** The service's time. */
  now(): number {
    return this.#options.clock.wall() + (this.#options.clockOffMs ?? 0);
  }

  /** When each task that is not done fires, by the machine's clock; one that is being called fires now. */
  get pending(): readonly { readonly name: string; readonly at: number }[] {
    const offMs = this.#options.clockOffMs ?? 0;
    const open = [...this.#tasks.values()].filter(({ state }) => state !== "done");
    return open.map(({ name, at }) => ({ name, at: at - offMs }));
  }

  readonly fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const fault = this.#options.fault?.();
    if (fault === "refuse") return this.#answer(503, { error: { code: 503, status: "UNAVAILABLE" } });
    const response = this.#create(url, init);
    if (fault === "lost") throw new Error("socket hang up");
    return response;
  };

  #create(url: string, init: RequestInit): Response {
    const queue = /^https?:\/\/[^/]+\/v2\/(projects\/[^/]+\/locations\/[^/]+\/queues\/[^/]+)\/tasks$/.exec(url)?.[1];
    if (queue === undefined || init.method !== "POST") return this.#invalid(404, "NOT_FOUND");
    const headers = new Headers(init.headers);
    if (!/^Bearer .+/.test(headers.get("authorization") ?? "")) return this.#invalid(401, "UNAUTHENTICATED");
    const text = String(init.body);
    if (text.length > 102_400) return this.#invalid(400, "the task is too large");
    const { task } = JSON.parse(text) as { task: CreatedTask };
    // The service names a task that has no name, and calls one without a time at once.
    const { name = `${queue}/tasks/${this.created + 1}` } = task;
    const id = name.startsWith(`${queue}/tasks/`) ? name.slice(queue.length + 7) : "";
    if (!/^[A-Za-z0-9_-]{1,500}$/.test(id)) return this.#invalid(400, "the name is not valid");
    const at = task.scheduleTime === undefined ? this.now() : Date.parse(task.scheduleTime);
    if (Number.isNaN(at) || at > this.now() + 30 * dayMs) return this.#invalid(400, "scheduleTime is too far ahead");
    const deadline = Number(/^(\d+(?:\.\d+)?)s$/.exec(task.dispatchDeadline)?.[1]);
    if (!(deadline >= 15 && deadline <= 1_800)) return this.#invalid(400, "dispatchDeadline is out of range");
    const before = this.#tasks.get(name);
    if (before !== undefined && (before.state !== "done" || this.now() - before.doneAt < dayMs)) {
      this.conflicts++;
      if (before.state !== "pending") this.lateConflicts++;
      return this.#invalid(409, "ALREADY_EXISTS");
    }
    this.created++;
    this.#schedule({ name, at, call: callOf(task), attempts: 0, state: "pending", doneAt: 0 });
    return this.#answer(200, { name, scheduleTime: new Date(at).toISOString() });
  }

  #schedule(task: Task): void {
    this.#tasks.set(task.name, task);
    if (this.#options.held !== true) this.#await(task);
  }

  #await(task: Task): void {
    const ms = Math.max(0, task.at - this.now());
    const isFar = ms > maxTimerMs;
    this.#options.clock.after(isFar ? maxTimerMs : ms, () => (isFar ? this.#await(task) : void this.#call(task)));
  }

  /** Calls every pending task now, as if its time had come. */
  release(): void {
    for (const task of this.#tasks.values()) if (task.state === "pending") void this.#call(task);
  }

  async #call(task: Task): Promise<void> {
    const { clock, dispatch, maxBackoffMs = 3_600_000 } = this.#options;
    task.state = "calling";
    this.calls++;
    const retries = task.attempts++;
    const { call, name } = task;
    const more = { "x-cloudtasks-taskname": name.split("/").at(-1)!, "x-cloudtasks-taskretrycount": String(retries) };
    const status = await dispatch({ ...call, headers: { ...call.headers, ...more } }).catch(() => 0);
    if (status >= 200 && status < 300) {
      task.state = "done";
      task.doneAt = this.now();
      return;
    }
    clock.after(Math.min(maxBackoffMs, 100 * 2 ** Math.min(16, retries)), () => void this.#call(task));
  }

  #invalid(code: number, status: string): Response {
    return this.#answer(code, { error: { code, status } });
  }

  #answer(status: number, body: unknown): Response {
    const headers = { date: new Date(this.now()).toUTCString(), "content-type": "application/json" };
    return new Response(JSON.stringify(body), { status, headers });
  }
}

interface CreatedTask {
  readonly name?: string;
  readonly scheduleTime?: string;
  readonly dispatchDeadline: string;
  readonly httpRequest: {
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
    readonly oidcToken?: { readonly serviceAccountEmail: string; readonly audience: string };
  };
}

/** Google signs a real token here; the fake only shows that one was requested, and for whom. */
function callOf({ httpRequest: { url, headers, body, oidcToken } }: CreatedTask): TaskCall {
  const token = oidcToken && { authorization: `Bearer fake ${oidcToken.serviceAccountEmail} ${oidcToken.audience}` };
  return { url, headers: { ...headers, ...token }, body: Buffer.from(body, "base64").toString() };
}
