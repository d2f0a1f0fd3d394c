import { createHash } from "node:crypto";
import { type Clock, systemClock } from "../base/clock.ts";
import { TapeError } from "../model/errors.ts";
import { assertKnownKeys, shown } from "../sdk/validate.ts";
import type { Alarm, Alarms } from "./alarms.ts";
import { type TaskQueueOptions, type TaskSpec, taskQueue, taskQueueKeys, taskRefusal } from "./task-queue.ts";

/** Where alarms are stored, and whom they call. */
export interface CloudTasksOptions extends TaskQueueOptions {
  /** The address of the sweep handler. */
  readonly url: string;
}

/** The service accepts 30 days; the difference is for the clocks. */
const furthestMs = 30 * 86_400_000 - 60_000;
/** A name is taken for up to a day after its task was executed. Each generation is another name. */
const maxGenerations = 20;
/** Beyond this an alarm might fire before its write is over: the margin is one bound, of 5 s at least. */
const maxClockErrorMs = 4_000;

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
  assertKnownKeys("cloudTasksAlarms", options, [...taskQueueKeys, "url"]);
  const { url, clock = systemClock } = options;
  if (typeof url !== "string" || !/^https?:\/\/[^/]/.test(url)) {
    const message = `cloudTasksAlarms: url is the address of the sweep handler, not ${shown(url)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "url" });
  }
  const create = taskQueue("cloudTasksAlarms", options);
  return {
    furthestMs,
    async set(alarm) {
      const at = clock.wall() + alarm.inMs;
      for (let generation = 0; generation < maxGenerations; generation++) {
        const response = await create({ url, at, ...taskOf(alarm, generation) });
        const serviceAt = serviceTime(response, clock);
        assertClock(serviceAt, clock);
        if (response.ok) return;
        if (response.status !== 409) throw await taskRefusal(response);
        if (isAhead(at, serviceAt)) return; // its task is pending
      }
      throw new Error(`Cloud Tasks: ${maxGenerations} names of alarm ${alarm.name} are taken`);
    },
  };
}

/** Whether a task with this time cannot have been executed yet. The service's time has whole seconds. */
const isAhead = (at: number, serviceAt: number): boolean => at >= serviceAt + 1_000;

/** A name starts with a hash: names with a common start slow the service down. */
function taskOf({ tenant, name }: Alarm, generation: number): Pick<TaskSpec, "name" | "body"> {
  const whose = hashOf(tenant, 16);
  const id = generation === 0 ? `${whose}-${name}` : `${whose}-${name}-${generation}`;
  return { name: `${hashOf(id, 8)}-${id}`, body: { alarm: name, tenant } };
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
