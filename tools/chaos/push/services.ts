import { cloudTasksAlarms } from "../../../src/alarm/cloud-tasks.ts";
import type { ServerlessOptions } from "../../../src/host/serverless.ts";
import { cloudTasksWaker } from "../../../src/push/wakers/cloud-tasks.ts";

const queue = "projects/p/locations/l/queues/tape";
/** The service resolves this name to the handlers; see `dispatch`. */
const handlers = "http://handlers.example";

/** Alarms and wake-ups by our fake of Cloud Tasks at that address. */
export function servicesAt(endpoint: string): Required<ServerlessOptions> {
  const options = { queue, endpoint, token: async () => "t" };
  return {
    alarms: cloudTasksAlarms({ ...options, url: `${handlers}/sweep` }),
    waker: cloudTasksWaker({ ...options, url: `${handlers}/push` }),
  };
}
