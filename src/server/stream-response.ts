import { z } from "zod";
import type { Clock } from "../base/clock.ts";
import type { Route } from "../protocol/route.ts";
import { eventsType, heartbeatLine, type WireRequest, type WireResponse } from "../protocol/transport.ts";
import { toWire } from "../protocol/values.ts";
import type { Chunk } from "../store/contract/store.ts";
import { eventsResponse, linesResponse } from "./response.ts";
import type { Service } from "./service-metrics.ts";
import { linesOf, type StreamFormat } from "./streams.ts";

/** With the three seconds of the token cache, the stream of a revoked token ends within five. */
const recheckMs = 1_500;

export interface StreamDeps {
  readonly service: Service;
  readonly clock: Clock;
  /** Resolves when the caller's tenant has its turn; undefined: at once. */
  readonly turn: () => Promise<void> | undefined;
  /** Frees the call's place. */
  readonly leave: () => void;
  /** Whether the credential is still valid; absent: it does not expire. */
  readonly isValid: (() => Promise<boolean>) | undefined;
}

/** A response that is written while it is produced. It ends with its source, its reader, its credential or the server. */
export async function streamResponse(
  request: WireRequest,
  route: Route,
  open: (signal: AbortSignal) => Promise<AsyncIterable<readonly unknown[]>>,
  { service, clock, turn, leave, isValid }: StreamDeps,
): Promise<WireResponse> {
  const stop = new AbortController();
  const end = (): void => stop.abort("ended");
  const sources = [service.drainSignal, ...(request.signal === undefined ? [] : [request.signal])];
  const pages = await open(stop.signal);
  service.streamStarted();
  stop.signal.addEventListener("abort", () => {
    for (const source of sources) source.removeEventListener("abort", end);
    leave();
    service.streamEnded();
  });
  for (const source of sources) source.addEventListener("abort", end);
  if (sources.some((source) => source.aborted)) end();
  if (isValid !== undefined) void watch(isValid, stop, clock);
  const json = route.events === true ? chunkJson : (item: unknown) => z.encode(route.answer, item as never);
  const events = route.events === true && request.headers.accept?.includes(eventsType) === true;
  const format = events ? eventFormat(json) : lineFormat(json);
  return (events ? eventsResponse : linesResponse)(linesOf(pages, format, { stop, clock, turn }));
}

/** A chunk as its schema encodes it, without the schema: a stream has thousands of them a second. */
function chunkJson(item: unknown): unknown {
  const { offset, part, at, ...rest } = item as Chunk;
  return "rewound" in rest ? { offset, part, at, ...rest } : { offset, part, at, value: toWire(rest.value) };
}

/** A stream ends with its credential, which is checked repeatedly while the stream is open. */
async function watch(isValid: () => Promise<boolean>, stop: AbortController, clock: Clock): Promise<void> {
  for (;;) {
    await clock.sleep(recheckMs, stop.signal);
    if (stop.signal.aborted) return;
    if (!(await isValid())) stop.abort("the credential is no longer valid");
  }
}

/** One line of JSON for each item, and an empty line as heartbeat. */
const lineFormat = (json: (item: unknown) => unknown): StreamFormat => ({
  item: (item) => `${JSON.stringify(json(item))}\n`,
  beat: `${heartbeatLine}\n`,
  end: "",
});

/** Events for browsers: the offset is the id, so that a reconnect resumes after it; the last event is `end`. */
const eventFormat = (json: (item: unknown) => unknown): StreamFormat => ({
  item: (item) => {
    const shown = json(item) as { readonly offset: number; readonly rewound?: true };
    const kind = shown.rewound === true ? "event: rewound\n" : "";
    return `id: ${shown.offset}\n${kind}data: ${JSON.stringify(shown)}\n\n`;
  },
  beat: ":\n\n",
  end: "event: end\ndata: {}\n\n",
});
