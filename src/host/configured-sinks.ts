import { defined } from "../base/defined.ts";
import type { Log } from "../base/log.ts";
import type { SinkSettings } from "../config/events-schema.ts";
import type { FanoutOptions } from "../events/options.ts";
import type { Sink } from "../events/sink.ts";
import { cloudEventsSink } from "../events/sinks/cloudevents.ts";
import { type EventHandler, functionSink } from "../events/sinks/function.ts";
import { logSink } from "../events/sinks/log.ts";
import { webhookSink } from "../events/sinks/webhook.ts";
import { TapeError } from "../model/errors.ts";
import { brokerNeeds, brokerSink, isBroker } from "./broker-sinks.ts";

/** The fan-out that `tape.events.sinks.NAME` describes. `handler`: its function, if it names one. */
export function configuredFanout(
  name: string,
  settings: SinkSettings,
  handler: EventHandler | undefined,
  log: Log,
): FanoutOptions {
  const { kinds, workflows, payload, from, lanes, window } = settings;
  const filter = defined({ kinds, workflows, labels: settings.labels && labelsOf(settings.labels) });
  return { name, sink: sinkOf(name, settings, handler, log), filter, payload, from, lanes, window };
}

/** `region:eu` is label region with value eu; a value may have colons. */
const labelsOf = (texts: readonly string[]): Record<string, string> =>
  Object.fromEntries(texts.map((text) => [text.slice(0, text.indexOf(":")), text.slice(text.indexOf(":") + 1)]));

function sinkOf(name: string, settings: SinkSettings, handler: EventHandler | undefined, log: Log): Sink {
  const { kind = handler === undefined ? undefined : "function", url, secrets, mode, batch, allow } = settings;
  const missing = (field: string): TapeError =>
    new TapeError("TAPE_BAD_CONFIG", `tape.events.sinks.${name}: ${field} is missing`, { sink: name, field });
  if (isBroker(kind)) {
    const needed = brokerNeeds[kind];
    if (settings[needed] === undefined) throw missing(needed);
    return brokerSink(kind, settings);
  }
  switch (kind) {
    case "webhook":
      if (url === undefined) throw missing("url");
      if (secrets === undefined) throw missing("secrets");
      return webhookSink({ url, secrets, ...defined({ allow }) });
    case "cloudevents":
      if (url === undefined) throw missing("url");
      return cloudEventsSink({ url, ...defined({ mode, batch, allow }) });
    case "log":
      return logSink({ log });
    case "function":
      if (handler === undefined) throw missing("handler");
      return functionSink(handler, { label: settings.handler ?? name, ...defined({ events: batch }) });
    default:
      throw missing("kind");
  }
}
