import { type TaskQueueOptions, taskQueue, taskQueueKeys, taskRefusal } from "../../alarm/task-queue.ts";
import type { Waker } from "../../reactor/remote.ts";
import { assertKnownKeys } from "../../sdk/validate.ts";
import { assertAddress, toReactor } from "./address.ts";

/** The queue of wake-ups, and whom they call. */
export interface CloudTasksWakerOptions extends TaskQueueOptions {
  /** Address of the handler; `{reactor}` in it is replaced by the reactor's name. */
  readonly url: string;
}

/** Each task is a request of its own to the service. */
const maxTasks = 100;

/**
 * Wakes handlers by tasks of Google Cloud Tasks, one for each request. The queue limits how many calls are under way, and
 * repeats those that fail.
 *
 * @example
 * const waker = cloudTasksWaker({ queue: "projects/p/locations/europe-west1/queues/tape", url: "https://push.example/{reactor}", serviceAccount });
 */
export function cloudTasksWaker(options: CloudTasksWakerOptions): Waker {
  assertKnownKeys("cloudTasksWaker", options, [...taskQueueKeys, "url"]);
  const { url } = options;
  assertAddress("cloudTasksWaker", url);
  const create = taskQueue("cloudTasksWaker", options);
  const send = async (reactor: string): Promise<void> => {
    const response = await create({ url: toReactor(url, reactor), body: { reactor } });
    if (!response.ok) throw await taskRefusal(response);
    await response.body?.cancel();
  };
  return {
    label: "cloud_tasks",
    async wake(reactor, requests) {
      await Promise.all(Array.from({ length: Math.min(requests, maxTasks) }, () => send(reactor)));
    },
  };
}
