import type { Alarms } from "../alarm/alarms.ts";
import { cloudTasksAlarms } from "../alarm/cloud-tasks.ts";
import { natsAlarms } from "../alarm/nats.ts";
import { defined } from "../base/defined.ts";
import type { Log } from "../base/log.ts";
import type { AlarmSettings, WakerSettings } from "../config/push-schema.ts";
import { loadNats } from "../events/sinks/nats.ts";
import { TapeError } from "../model/errors.ts";
import type { Waker } from "./waker.ts";
import { cloudTasksWaker } from "./wakers/cloud-tasks.ts";
import { jetstreamOf, natsWaker } from "./wakers/nats.ts";
import { pubsubWaker } from "./wakers/pubsub.ts";
import { webhookWaker } from "./wakers/webhook.ts";

/** A setting without which a waker or an alarm service of its kind cannot exist. */
function required<T>(path: string, value: T | undefined): T {
  if (value !== undefined) return value;
  throw new TapeError("TAPE_BAD_CONFIG", `${path} is missing`, { setting: path });
}

/** The waker that `tape.push.waker` describes. The client of NATS must be installed at the start, not at the first use. */
export async function configuredWaker(settings: WakerSettings, tenant: string, log: Log): Promise<Waker> {
  const { kind, url, secrets = [], topic, queue, servers, endpoint, prefix } = settings;
  const of = (name: string): string => `tape.push.waker.${name}`;
  switch (kind) {
    case "webhook": {
      const { concurrency, timeout_s: timeoutS } = settings;
      return webhookWaker({ url: required(of("url"), url), secrets, concurrency, timeout: timeoutS * 1_000, log });
    }
    case "pubsub":
      return pubsubWaker({ topic: required(of("topic"), topic), ...defined({ endpoint }) });
    case "cloud_tasks":
      return cloudTasksWaker({
        ...{ queue: required(of("queue"), queue), url: required(of("url"), url) },
        ...taskCalls(settings),
      });
    case "nats":
      required(of("servers"), servers);
      await loadNats("tape.push.waker");
      return natsWaker({ servers: servers!, connect: credentials(settings), tenant, ...defined({ prefix }) });
  }
}

/** Alarms that are closed with the process. */
export interface ConfiguredAlarms {
  readonly alarms: Alarms;
  close(): Promise<void>;
}

/** The alarms that `tape.push.alarms` describes. */
export async function configuredAlarms(settings: AlarmSettings): Promise<ConfiguredAlarms> {
  const { kind, url, queue, servers, prefix } = settings;
  const of = (name: string): string => `tape.push.alarms.${name}`;
  if (required(of("kind"), kind) === "cloud_tasks") {
    const target = { queue: required(of("queue"), queue), url: required(of("url"), url) };
    return { alarms: cloudTasksAlarms({ ...target, ...taskCalls(settings) }), close: async () => {} };
  }
  required(of("servers"), servers);
  await loadNats("tape.push.alarms");
  const jetstream = jetstreamOf("tape.push.alarms", { servers: servers!, connect: credentials(settings) });
  return { alarms: natsAlarms({ jetstream, ...defined({ prefix }) }), close: () => jetstream.close() };
}

const taskCalls = ({ service_account: serviceAccount, audience, endpoint }: Omit<AlarmSettings, "kind">) =>
  defined({ serviceAccount, audience, endpoint });

const credentials = ({ token, user, password: pass }: Pick<AlarmSettings, "token" | "user" | "password">) =>
  defined({ token, user, pass });
