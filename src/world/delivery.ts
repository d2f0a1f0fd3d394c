import type { Clock } from "../base/clock.ts";
import { blocks } from "../connector/http/addresses.ts";
import { systemResolve } from "../connector/http/connect.ts";
import { exchange, placeOf } from "../connector/http/exchange.ts";
import { TapeError } from "../model/errors.ts";
import type { StepRetryPolicy } from "../sdk/context.ts";
import { type Workflow, workflow } from "../sdk/workflow.ts";
import { bodyOf, headersOf } from "./envelope.ts";

/** A message as its run has it. The id of the message is that of the run. */
export interface QueuedMessage {
  readonly queue: string;
  /** `flow` or `step`: the route of its handler. */
  readonly route: string;
  readonly message: unknown;
  readonly headers: Readonly<Record<string, string>>;
}

/** What a handler answered: the message is done, or is to be delivered again. */
export type Answer = { readonly done: true } | { readonly done: false; readonly againMs: number | undefined };

/** Makes one delivery. It throws if no handler has answered. */
export type Deliver = (message: QueuedMessage, id: string, attempt: number, signal: AbortSignal) => Promise<Answer>;

/** A handler that fails gets the message again after 1 s, then after twice as long each time. */
const firstPauseMs = 1_000;
const maxPauseMs = 60_000;
/** The framework gives up a message after 48 deliveries that failed; those that it asks for itself count here, too. */
const maxDeliveries = 10_000;
/** While no handler answers at all: more and more rarely, for a week; then the run is stuck, for an operator to redrive. */
const whileUnreachable: StepRetryPolicy = { attempts: 60, base: 250, factor: 2, cap: "30s", giveUpAfter: "7d" };
/** The longest delay of a message or between its deliveries. */
export const maxDelayMs = 366 * 24 * 3_600_000;

/**
 * What messages are: runs of this workflow. So recovery, timers and back-off of messages are those of runs. Its name has
 * the prefix, because processes with another prefix have other handlers.
 */
export function messageWorkflow(prefix: string, deliver: Deliver): Workflow<QueuedMessage, { deliveries: number }> {
  return workflow(`${prefix}.message`, async (tape, message: QueuedMessage) => {
    for (let n = 1; n <= maxDeliveries; n++) {
      const body = ({ abortSignal }: { readonly abortSignal: AbortSignal }): Promise<Answer> =>
        deliver(message, tape.runId, n, abortSignal);
      const answer = await tape.step(`delivery ${n}`, body, { retry: whileUnreachable });
      if (answer.done) return { deliveries: n };
      const pauseMs = answer.againMs ?? Math.min(maxPauseMs, firstPauseMs * 2 ** Math.min(n - 1, 10));
      if (pauseMs > 0) await tape.sleep(Math.min(pauseMs, maxDelayMs));
    }
    throw new Error(`the message was not done after ${maxDeliveries} deliveries`);
  });
}

/** Where messages are posted, and with which secret they are signed. */
export interface PostOptions {
  readonly clock: Clock;
  /** Asked at each delivery: a server may learn its port late. */
  readonly baseUrl: () => string | undefined;
  readonly secret: () => Promise<string>;
}

/** A handler works on a message while it answers, so it may take this long. */
const handlerMs = 24 * 3_600_000;
const connectMs = 5_000;
const maxAnswerBytes = 64 * 1024;

/** Posts messages to the handlers of the framework. */
export function postTo({ clock, baseUrl, secret }: PostOptions): Deliver {
  // The address comes from the program, not from a message: it may be on any network.
  const by = { resolve: systemResolve, allow: blocks(["0.0.0.0/0", "::/0"]), connectMs, tls: {}, clock };
  return async ({ queue, route, message, headers: given }, id, attempt, signal) => {
    const base = baseUrl();
    if (base === undefined) {
      const message = "the address of the handlers is unknown: set PORT or WORKFLOW_TAPE_BASE_URL, or pass baseUrl";
      throw new TapeError("TAPE_UNREACHABLE", message, {});
    }
    const url = new URL(`${base.replace(/\/+$/, "")}/.well-known/workflow/v1/${route}`);
    const body = bodyOf(message);
    const headers = headersOf({ queue, id, attempt, body }, await secret(), given);
    const outgoing = { method: "POST", url, headers, body: Buffer.from(body) };
    const answer = await exchange(outgoing, by, { responseMs: handlerMs, responseBytes: maxAnswerBytes }, signal);
    return answerOf(answer.status, answer.body) ?? notAHandler(url, answer);
  };
}

/** What a handler of a world answers; undefined: something else has answered. */
function answerOf(status: number, body: unknown): Answer | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const { ok, failed, timeoutSeconds } = body as { ok?: unknown; failed?: unknown; timeoutSeconds?: unknown };
  if (status === 500 && failed === true) return { done: false, againMs: undefined };
  if (status !== 200) return undefined;
  if (typeof timeoutSeconds === "number" && timeoutSeconds >= 0)
    return { done: false, againMs: timeoutSeconds * 1_000 };
  return ok === true ? { done: true } : undefined;
}

/** A proxy without a server behind it, a page for what is not found: the message has reached no handler. */
function notAHandler(url: URL, { status, body }: { readonly status: number; readonly body: unknown }): never {
  const { error } = (typeof body === "object" && body !== null ? body : {}) as { error?: unknown };
  const why = typeof error === "string" ? `: ${error}` : "";
  throw new TapeError("TAPE_UNREACHABLE", `no handler of messages answers at ${placeOf(url)}, but ${status}${why}`, {});
}
