import type { Fanout } from "../events/fanout.ts";
import type { FanoutOptions } from "../events/options.ts";
import { createRunner } from "../sdk/workflow.ts";
import { Tape } from "./tape.ts";

/** A running fan-out. */
export type EventFanout = Pick<Fanout, "name" | "view" | "stop">;

/**
 * Sends the events of a tenant to a sink, at least once and in order within each run, from one process at a time. With a
 * store's URL it opens the store, and closes it when it stops.
 *
 * @example
 * const fanout = await runEventFanout(app, { name: "billing", sink: webhookSink({ url, secrets: [secret] }) });
 * await fanout.stop();
 */
export async function runEventFanout(app: Tape | string, options: FanoutOptions): Promise<EventFanout> {
  if (typeof app !== "string") return app.fanouts.start(options);
  const own = await Tape.open({ store: app, runner: createRunner({ workflows: [] }), work: false });
  try {
    const fanout = own.fanouts.start(options);
    return { name: fanout.name, view: () => fanout.view(), stop: () => own.close() };
  } catch (error) {
    await own.close();
    throw error;
  }
}
