import type { Config } from "../config/schema.ts";
import type { ServerlessOptions } from "../host/serverless.ts";
import { configuredAlarms } from "../push/configured.ts";

/** What a process of this package needs where timers have `mode: alarms`. */
export interface AlarmsInUse {
  /** For `Tape.open`, whose store then sets an alarm before each write that can put something on the agenda. */
  readonly serverless?: ServerlessOptions;
  close(): Promise<void>;
}

/** The alarms of tape.yaml. Without `mode: alarms` there are none: a loop or an announcer finds what is due. */
export async function alarmsInUse({ tape }: Config): Promise<AlarmsInUse> {
  if (!tape.reactors.timers.enabled || tape.reactors.timers.mode !== "alarms") return { close: async () => {} };
  const { alarms, close } = await configuredAlarms(tape.push.alarms);
  return { serverless: { alarms }, close };
}
