import { type Clock, systemClock } from "../base/clock.ts";
import type { Duration } from "../base/duration.ts";
import { type Fetch, machineToken } from "../base/google-token.ts";
import { TapeError } from "../model/errors.ts";
import { durationOf, shown } from "../sdk/validate.ts";

/** A queue of Google Cloud Tasks, and what its calls carry. */
export interface TaskQueueOptions {
  /** `projects/P/locations/L/queues/Q`. */
  readonly queue: string;
  /** The service account whose token the calls carry, for a handler with `googleOidc`. */
  readonly serviceAccount?: string;
  /** The audience of that token. Default: the address that is called. */
  readonly audience?: string;
  /** Further headers of the calls, for example those of a shared secret. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How long a call may take, from 15 s to 30 min. Longer than the handler's `within`. Default 60 s. */
  readonly dispatchDeadline?: Duration;
  /** An access token for the API. Default: the metadata server's, for the service account of the host. */
  readonly token?: () => Promise<string>;
  /** Default `https://cloudtasks.googleapis.com`. */
  readonly endpoint?: string;
  readonly clock?: Clock;
  /** Makes the requests. Default: the global `fetch`. */
  readonly fetch?: Fetch;
}

/** A call that the queue makes. */
export interface TaskSpec {
  readonly url: string;
  /** Becomes JSON. */
  readonly body: object;
  /** Within the queue; the service chooses one if it is absent. */
  readonly name?: string;
  /** Absent: now. */
  readonly at?: number;
}

export const taskQueueKeys = [
  ...["queue", "serviceAccount", "audience", "headers", "dispatchDeadline"],
  ...["token", "endpoint", "clock", "fetch"],
];

const requestMs = 4_000;

/** Creates tasks of a queue through the REST API v2. Wrong options are refused at once. */
export function taskQueue(subject: string, options: TaskQueueOptions): (task: TaskSpec) => Promise<Response> {
  const deadlineMs = check(subject, options);
  const { queue, endpoint = "https://cloudtasks.googleapis.com", clock = systemClock } = options;
  const { fetch: send = (url, init) => fetch(url, init) } = options;
  const machine = machineToken(clock, send);
  const { token = () => bounded(clock, machine) } = options;
  return async (task) => {
    const headers = { authorization: `Bearer ${await token()}`, "content-type": "application/json" };
    const dispatchDeadline = `${deadlineMs / 1_000}s`;
    const body = JSON.stringify({ task: { ...taskOf(options, task), dispatchDeadline } });
    return bounded(clock, (signal) => send(`${endpoint}/v2/${queue}/tasks`, { method: "POST", headers, body, signal }));
  };
}

function check(subject: string, { queue, dispatchDeadline }: TaskQueueOptions): number {
  if (!/^projects\/[^/]+\/locations\/[^/]+\/queues\/[A-Za-z0-9-]{1,100}$/.test(queue)) {
    const message = `${subject}: queue is projects/P/locations/L/queues/Q, not ${shown(queue)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "queue" });
  }
  const deadlineMs = durationOf(subject, "dispatchDeadline", dispatchDeadline, 60_000);
  if (deadlineMs < 15_000 || deadlineMs > 1_800_000) {
    const message = `${subject}: dispatchDeadline is between 15 s and 30 min, not ${deadlineMs} ms`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "dispatchDeadline" });
  }
  return deadlineMs;
}

function taskOf(options: TaskQueueOptions, { url, body, name, at }: TaskSpec): object {
  const { queue, serviceAccount, audience = url, headers } = options;
  return {
    ...(name !== undefined && { name: `${queue}/tasks/${name}` }),
    ...(at !== undefined && { scheduleTime: new Date(at).toISOString() }),
    httpRequest: {
      url,
      httpMethod: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: Buffer.from(JSON.stringify(body)).toString("base64"),
      ...(serviceAccount !== undefined && { oidcToken: { serviceAccountEmail: serviceAccount, audience } }),
    },
  };
}

/** What the service has against a task. */
export async function taskRefusal(response: Response): Promise<Error> {
  const text = (await response.text().catch(() => "")).slice(0, 500);
  return new Error(`Cloud Tasks answered ${response.status}: ${text}`);
}

async function bounded<T>(clock: Clock, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const cancel = clock.after(requestMs, () => late.abort(new Error(`no response within ${requestMs} ms`)));
  try {
    return await work(late.signal);
  } finally {
    cancel();
  }
}
