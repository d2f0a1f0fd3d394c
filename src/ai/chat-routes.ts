import { type Approval, toolApproval } from "../agent/approval.ts";
import { sizeOf } from "../base/codec.ts";
import type { RunFollower } from "../host/follow-run.ts";
import type { OpenGate } from "../host/gates.ts";
import type { SignalOptions, StartOptions } from "../host/options.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { defaultLimits } from "../model/limits.ts";
import type { Workflow } from "../sdk/context.ts";
import type { GateDefinition } from "../sdk/gate.ts";
import { assertKnownKeys, shown } from "../sdk/validate.ts";
import type { RunView } from "../store/contract/store.ts";
import { approvalPlaceOf } from "./ui-chunks.ts";
import { type UiStreamOptions, uiResponse } from "./ui-stream.ts";

/** The part of an app that serves a chat. */
export interface ChatApp extends RunFollower {
  /** Starts the run of a chat. */
  start<I, O>(workflow: Workflow<I, O>, input: I, options?: StartOptions): Promise<unknown>;
  /** Sends an answer to the run. */
  signal<T>(run: string, gate: GateDefinition<T>, value: T, options?: SignalOptions): Promise<void>;
  /** Finds the runs of a chat. */
  readonly runs: {
    list(filter: { label: { key: string; value: string }; limit: number }): Promise<readonly RunView[]>;
  };
  /** Finds what a run waits for. */
  readonly gates: { list(filter: { run: string }): Promise<readonly OpenGate[]> };
}

/** What `useChat` posts. */
export interface ChatRequest {
  /** The id of the chat. */
  readonly id: string;
  readonly messages: readonly UiMessage[];
  /** Why the page posts. */
  readonly trigger?: string;
}

/** A message of `useChat`. */
export interface UiMessage {
  readonly id: string;
  /** Whose message it is. */
  readonly role: string;
  /** Its parts. */
  readonly parts: readonly { readonly type: string; readonly [field: string]: unknown }[];
}

/** How the runs of a chat are started. */
export interface ChatRoutesOptions<I> {
  /** The input of the run, from what the browser sends. Default: its messages. */
  readonly input?: (request: ChatRequest) => I | Promise<I>;
  /** Budget, labels and queue of the runs. */
  readonly start?: Omit<StartOptions, "id">;
  /** What happens to text of an attempt that is repeated. */
  readonly onReset?: UiStreamOptions["onReset"];
}

/** The two routes of `useChat({ resume: true })`. */
export interface ChatRoutes {
  /** `POST /api/chat`: starts a run for the user's turn, or answers an approval, and streams it. */
  POST(request: Request): Promise<Response>;
  /** `GET /api/chat/{id}/stream`: streams the turn that is in progress; 204 if there is none. */
  GET(request: Request, chat: string): Promise<Response>;
}

const maxIdChars = 200;
const maxMessages = 10_000;
const label = "chat";

/**
 * Routes for `useChat({ resume: true })`: a chat is one run for each turn of the user, with the id `chat/<id>/<n>`, so a
 * double click is one turn. Check who is calling before you call them: a chat belongs to a user of yours.
 *
 * @example
 * const routes = chatRoutes(app, chat);
 * export const POST = async (request: Request) => (await isSignedIn(request)) ? routes.POST(request) : new Response(null, { status: 401 });
 */
export function chatRoutes<I, O>(
  app: ChatApp,
  workflow: Workflow<I, O>,
  options: ChatRoutesOptions<I> = {},
): ChatRoutes {
  assertKnownKeys("chatRoutes", options, ["input", "start", "onReset"]);
  const { onReset, start, input = (request: ChatRequest) => request.messages as I } = options;
  const follow = (run: string, { signal }: Request, after?: string): Response =>
    uiResponse(app, run, { signal, ...(onReset && { onReset }), ...(after !== undefined && { after }) });
  const latest = async (chat: string): Promise<RunView | undefined> =>
    (await app.runs.list({ label: { key: label, value: chat }, limit: 1 }))[0];
  return {
    POST: (request) =>
      answered(async () => {
        const body = await chatRequestOf(request);
        const approved = await answerApprovals(app, body);
        if (approved !== undefined) return follow(approved.run, request, approved.cursor);
        const turn = `chat/${body.id}/${body.messages.filter(({ role }) => role === "user").length}`;
        const run = body.trigger === "regenerate-message" ? again(turn, await latest(body.id)) : turn;
        const labels = { ...start?.labels, [label]: body.id };
        await app.start(workflow, await input(body), { ...start, id: run, labels });
        return follow(run, request);
      }),
    GET: (request, chat) =>
      answered(async () => {
        const run = await latest(checkedId(chat));
        if (run === undefined || run.endedAt !== null) return new Response(null, { status: 204 });
        return follow(run.id, request, request.headers.get("last-event-id") ?? undefined);
      }),
  };
}

/** An answer that is generated again is another run of the same turn. */
function again(turn: string, before: RunView | undefined): string {
  const [, k] = /\/again-(\d+)$/.exec(before?.id ?? "") ?? [];
  return `${turn}/again-${1 + Number(k ?? 0)}`;
}

/** Signals the gates that the browser answers. undefined: it answers none. */
async function answerApprovals(
  app: ChatApp,
  { id, messages }: ChatRequest,
): Promise<{ run: string; cursor: string } | undefined> {
  const parts = messages.at(-1)?.role === "assistant" ? messages.at(-1)!.parts : [];
  let last: { run: string; cursor: string } | undefined;
  for (const part of parts) {
    const { approval } = part as { approval?: { id?: unknown; approved?: unknown; reason?: unknown } };
    const place = part.state === "approval-responded" ? approvalPlaceOf(approval?.id) : undefined;
    if (place === undefined || typeof approval?.approved !== "boolean") continue;
    if (!place.run.startsWith(`chat/${id}/`)) throw bad("approval.id", "it belongs to another chat");
    last = place;
    const gates = await app.gates.list({ run: place.run });
    const gate = gates.find(({ pos, name }) => pos === place.pos && name === toolApproval.name);
    if (gate?.binds === undefined) continue; // it was answered already
    const { approved, reason } = approval;
    const answer: Approval = { approved, ...(typeof reason === "string" && { reason }) };
    await app.signal(place.run, toolApproval, answer, { binds: gate.binds, mustMatch: true }).catch(ignoreStale);
  }
  return last;
}

function ignoreStale(error: unknown): void {
  if (!isTapeError(error, "TAPE_GATE_STALE")) throw error;
}

async function chatRequestOf(request: Request): Promise<ChatRequest> {
  const maxBytes = defaultLimits.payloadBytes;
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const text = await request.text();
  if (sizeOf(text) > maxBytes) throw tooLarge(maxBytes);
  const body = jsonOf(text) as Partial<ChatRequest> | null;
  const { messages, trigger } = body ?? {};
  const isMessage = (one: Partial<UiMessage> | null): boolean =>
    typeof one?.role === "string" && Array.isArray(one.parts);
  if (!Array.isArray(messages) || messages.length > maxMessages || !messages.every(isMessage)) {
    throw bad("messages", `it is a list of at most ${maxMessages} messages with role and parts`);
  }
  return { id: checkedId(body?.id), messages, ...(typeof trigger === "string" && { trigger }) };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw bad("body", "it is no JSON");
  }
}

function checkedId(id: unknown): string {
  if (typeof id === "string" && id.length > 0 && id.length <= maxIdChars && !id.includes("/")) return id;
  throw bad("id", `it is a text of at most ${maxIdChars} characters without a slash, not ${shown(id)}`);
}

const bad = (field: string, why: string): TapeError =>
  new TapeError("TAPE_BAD_INPUT", `${field} of a chat: ${why}`, { field });

const tooLarge = (maxBytes: number): TapeError =>
  new TapeError("TAPE_TOO_LARGE", `a request of a chat has at most ${maxBytes} bytes`, { field: "body" });

const statuses: Readonly<Record<string, number>> = {
  TAPE_BAD_INPUT: 400,
  TAPE_TOO_LARGE: 413,
  TAPE_RUN_CONFLICT: 409,
  TAPE_QUOTA: 429,
};

/** Mistakes of the caller as responses; everything else is the server's, and is thrown. */
async function answered(work: () => Promise<Response>): Promise<Response> {
  try {
    return await work();
  } catch (error) {
    const status = isTapeError(error) ? statuses[error.code] : undefined;
    if (status === undefined || !isTapeError(error)) throw error;
    return Response.json({ code: error.code, message: error.message }, { status });
  }
}
