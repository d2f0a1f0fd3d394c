import { createHash } from "node:crypto";
import { type Log, logOf } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import type { SignalOptions, StartOptions } from "../host/options.ts";
import { type ErrorCode, isTapeError, TapeError } from "../model/errors.ts";
import type { GateDefinition } from "../sdk/gate.ts";
import { assertKnownKeys } from "../sdk/validate.ts";
import type { Workflow } from "../sdk/workflow.ts";
import { decodePush, type PushEvent, Unreadable } from "./decode.ts";
import { admitted, type Handler, noContent, problem, unavailable } from "./request.ts";
import type { Verify } from "./verify/verify.ts";

/** Starts a run for an event. Events come from outside: give the workflow a schema, which checks the input. */
export interface StartAction {
  /** The workflow. */
  readonly start: Pick<Workflow<never, unknown>, "name" | "run">;
  /** Its input. */
  readonly input: unknown;
  /** Default: from the event's source and id, so that a redelivery finds the run that it has started. */
  readonly id?: string;
  /** Options of the start, without the id, which follows from the event. */
  readonly options?: Omit<StartOptions, "id">;
}

/** Sends a signal for an event. */
export interface SignalAction {
  /** The gate. */
  readonly signal: GateDefinition<unknown>;
  /** The run that receives it. */
  readonly run: string;
  /** What the gate receives. */
  readonly value: unknown;
  /** Default: from the event's source and id, so that a redelivery is the same signal. */
  readonly key?: string;
}

/** What a receiver needs of an app. */
export interface ReceiverApp {
  /** Starts a run. */
  start<I, O>(workflow: Workflow<I, O>, input: I, options?: StartOptions): Promise<unknown>;
  /** Sends a signal. */
  signal<T>(run: string, gate: GateDefinition<T>, value: T, options?: SignalOptions): Promise<void>;
}

/** Which events a receiver accepts, and what it does with them. */
export interface ReceiverOptions {
  /** Who may call. There is no default. */
  readonly verify: Verify;
  /** What an event does; undefined: nothing, and it is answered 204. */
  readonly map: (event: PushEvent) => EventAction | undefined | Promise<EventAction | undefined>;
  readonly log?: Log;
}

/** What an event does. */
export type EventAction = StartAction | SignalAction;

const maxBytes = 1_048_576;

/**
 * A fetch-style handler that turns events of other systems into runs and signals. An event starts one run, however often
 * it is delivered: the run's id comes from the event.
 *
 * @example
 * export const inbox = receiver(app, {
 *   verify: webhookSignature({ secrets: [process.env.HOOK_SECRET!] }),
 *   map: ({ type, data }) => (type === "order.paid" ? { start: ship, input: data as Order } : undefined),
 * });
 */
export function receiver(app: ReceiverApp, options: ReceiverOptions): Handler {
  assertKnownKeys("receiver", options, ["verify", "map", "log"]);
  const { verify, map, log = logOf("warn") } = options;
  if (typeof map !== "function") {
    throw new TapeError("TAPE_BAD_INPUT", "receiver: map must be a function of an event", { field: "map" });
  }
  return admitted({ subject: "receiver", verify, log, maxBytes }, async ({ headers, body }) => {
    try {
      for (const event of decodePush(headers, body)) {
        const action = await map(event);
        if (action !== undefined) await carryOut(app, event, action);
      }
      return noContent();
    } catch (error) {
      return answerTo(error, log);
    }
  });
}

async function carryOut(app: ReceiverApp, event: PushEvent, action: EventAction): Promise<void> {
  if ("signal" in action) {
    const key = action.key ?? nameOf(event);
    await app.signal(
      action.run,
      action.signal as GateDefinition<unknown>,
      action.value,
      key === undefined ? {} : { key },
    );
    return;
  }
  const id = action.id ?? nameOf(event);
  if (id === undefined) throw new Unreadable("the event has no id, so a redelivery would start a second run");
  try {
    await app.start(action.start as unknown as Workflow<unknown, unknown>, action.input, { ...action.options, id });
  } catch (error) {
    // The run was started, has ended, and was pruned: this is a late redelivery.
    if (!isTapeError(error, "TAPE_RUN_GONE")) throw error;
  }
}

/** The same for every delivery of an event, and different for equal ids of two senders. */
function nameOf({ id, source = "" }: PushEvent): string | undefined {
  if (id === undefined) return undefined;
  const sender = createHash("sha256").update(source).digest("hex").slice(0, 16);
  return `evt-${sender}-${id.length <= 400 ? id : createHash("sha256").update(id).digest("hex")}`;
}

/** Errors that a repetition cannot mend; the sender's own dead letters get the event. */
const conflicts: ReadonlySet<ErrorCode> = new Set(["TAPE_RUN_CONFLICT"]);

function answerTo(error: unknown, log: Log): Response {
  if (error instanceof Unreadable) {
    log("warn", "push.unreadable", { reason: error.message });
    return problem(422, error.message);
  }
  const known = isTapeError(error) ? error : undefined;
  const later = known?.retry === "later" || known?.code === "TAPE_STORE_CLOSED";
  const refused = known !== undefined && !later && known.fault === "caller";
  log(refused || later ? "warn" : "error", "push.not_received", { ...errorFields(error) });
  if (later) return unavailable();
  if (!refused) return problem(500, "the receiver failed");
  return problem(conflicts.has(known.code) ? 409 : 422, known.code);
}
