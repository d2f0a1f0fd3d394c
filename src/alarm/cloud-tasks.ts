import { createHash } from "node:crypto";
import { type Clock, systemClock } from "../base/clock.ts";
import type { Duration } from "../base/duration.ts";
import { TapeError } from "../model/errors.ts";
import { assertKnownKeys, durationOf, shown } from "../sdk/validate.ts";
import type { Alarm, Alarms } from "./alarms.ts";

/** Where alarms are stored, and whom they call. */
export interface CloudTasksOptions {
  /** `projects/P/locations/L/queues/Q`. */
  readonly queue: string;
  /** The address of the sweep handler. */
  readonly url: string;
  /** The service account whose token the calls carry, for a handler with `googleOidc`. */
  readonly serviceAccount?: string;
  /** The audience of that token. Default: the address. */
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
  /** Replaces the network; a seam for tests. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

const known = [
  ...["queue", "url", "serviceAccount", "audience", "headers", "dispatchDeadline"],
  ...["token", "endpoint", "clock", "fetch"],
];

/** The service accepts 30 days; the difference is for the clocks. */
const furthestMs = 30 * 86_400_000 - 60_000;
/** A name is taken for up to a day after its task was executed. Each generation is another name. */
const maxGenerations = 20;
/** Beyond this an alarm might fire before its write is over: the margin is one bound, of 5 s at least. */
const maxClockErrorMs = 4_000;
const requestMs = 4_000;
const metadataUrl = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token";

/**
 * Alarms as tasks of Google Cloud Tasks (REST API v2), one task for each moment.
 *
 * A name that exists is answered with 409, whether its task is pending or was executed within the last day. A task with
 * a time ahead is pending, so the alarm is set. Otherwise it may be gone, and the alarm gets another name.
 *
 * @example
 * const alarms = cloudTasksAlarms({ queue: "projects/p/locations/europe-west1/queues/tape", url: "https://app.example/sweep", serviceAccount });
 */
export function cloudTasksAlarms(options: CloudTasksOptions): Alarms {
  const deadlineMs = check(options);
  const { queue, endpoint = "https://cloudtasks.googleapis.com", clock = systemClock } = options;
  const { fetch: send = (url, init) => fetch(url, init) } = options;
  const token = options.token ?? metadataToken(send, clock);

  const create = async (alarm: Alarm, at: number, generation: number): Promise<Response> => {
    const task = { ...taskOf(options, alarm, generation), scheduleTime: new Date(at).toISOString() };
    const deadline = { dispatchDeadline: `${deadlineMs / 1_000}s` };
    const headers = { authorization: `Bearer ${await token()}`, "content-type": "application/json" };
    const body = JSON.stringify({ task: { ...task, ...deadline } });
    return bounded(clock, (signal) => send(`${endpoint}/v2/${queue}/tasks`, { method: "POST", headers, body, signal }));
  };

  return {
    furthestMs,
    async set(alarm) {
      const at = clock.wall() + alarm.inMs;
      for (let generation = 0; generation < maxGenerations; generation++) {
        const response = await create(alarm, at, generation);
        const serviceAt = serviceTime(response, clock);
        assertClock(serviceAt, clock);
        if (response.ok) return;
        if (response.status !== 409) throw await refusal(response);
        if (isAhead(at, serviceAt)) return; // its task is pending
      }
      throw new Error(`Cloud Tasks: ${maxGenerations} names of alarm ${alarm.name} are taken`);
    },
  };
}

/** Whether a task with this time cannot have been executed yet. The service's time has whole seconds. */
const isAhead = (at: number, serviceAt: number): boolean => at >= serviceAt + 1_000;

function check(options: CloudTasksOptions): number {
  assertKnownKeys("cloudTasksAlarms", options, known);
  const { queue, url } = options;
  if (!/^projects\/[^/]+\/locations\/[^/]+\/queues\/[A-Za-z0-9-]{1,100}$/.test(queue)) {
    const message = `cloudTasksAlarms: queue is projects/P/locations/L/queues/Q, not ${shown(queue)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "queue" });
  }
  if (typeof url !== "string" || !/^https?:\/\/[^/]/.test(url)) {
    const message = `cloudTasksAlarms: url is the address of the sweep handler, not ${shown(url)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "url" });
  }
  const deadlineMs = durationOf("cloudTasksAlarms", "dispatchDeadline", options.dispatchDeadline, 60_000);
  if (deadlineMs < 15_000 || deadlineMs > 1_800_000) {
    const message = `cloudTasksAlarms: dispatchDeadline is between 15 s and 30 min, not ${deadlineMs} ms`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "dispatchDeadline" });
  }
  return deadlineMs;
}

/** A name starts with a hash: names with a common start slow the service down. */
function taskOf(options: CloudTasksOptions, { tenant, name }: Alarm, generation: number): object {
  const { queue, url, serviceAccount, audience = url, headers } = options;
  const whose = hashOf(tenant, 16);
  const id = generation === 0 ? `${whose}-${name}` : `${whose}-${name}-${generation}`;
  const body = Buffer.from(JSON.stringify({ alarm: name, tenant })).toString("base64");
  return {
    name: `${queue}/tasks/${hashOf(id, 8)}-${id}`,
    httpRequest: {
      url,
      httpMethod: "POST",
      headers: { "content-type": "application/json", ...headers },
      body,
      ...(serviceAccount !== undefined && { oidcToken: { serviceAccountEmail: serviceAccount, audience } }),
    },
  };
}

const hashOf = (text: string, digits: number): string =>
  createHash("sha256").update(text).digest("hex").slice(0, digits);

function serviceTime(response: Response, clock: Clock): number {
  const at = Date.parse(response.headers.get("date") ?? "");
  return Number.isNaN(at) ? clock.wall() : at;
}

function assertClock(serviceAt: number, clock: Clock): void {
  const offMs = clock.wall() - serviceAt;
  if (offMs >= -maxClockErrorMs && offMs <= maxClockErrorMs + 1_000) return;
  throw new Error(
    `Cloud Tasks: the clock of this process differs from the service's by ${Math.round(offMs / 1_000)} s`,
  );
}

async function refusal(response: Response): Promise<Error> {
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

/** The token of the host's own service account, kept until shortly before it expires. */
function metadataToken(send: NonNullable<CloudTasksOptions["fetch"]>, clock: Clock): () => Promise<string> {
  let kept: { readonly token: string; readonly until: number } | undefined;
  return async () => {
    if (kept !== undefined && clock.wall() < kept.until) return kept.token;
    const init = { headers: { "metadata-flavor": "Google" } };
    const response = await bounded(clock, (signal) => send(metadataUrl, { ...init, signal }));
    if (!response.ok) throw new Error(`the metadata server answered ${response.status}; pass token for another host`);
    const { access_token: token, expires_in: seconds } = (await response.json()) as {
      readonly access_token: string;
      readonly expires_in: number;
    };
    kept = { token, until: clock.wall() + (seconds - 60) * 1_000 };
    return token;
  };
}
