import type { z } from "zod";
import type { Contract, RouteName } from "../../src/protocol/contract.ts";
import type { Problem } from "../../src/protocol/problem.ts";
import { opened, sealedFor } from "./sealed.ts";

/** Every route that the dashboard calls. Each is typed against the contract: a wrong path does not compile. */
const calls = {
  whoami: ["GET", "/v1/whoami"],
  settings: ["GET", "/v1/settings"],
  overview: ["GET", "/v1/overview"],
  "overview.history": ["GET", "/v1/overview/history"],
  "budgets.list": ["GET", "/v1/budgets"],
  "quotas.get": ["GET", "/v1/quota"],
  "retention.get": ["GET", "/v1/retention"],
  "journals.names": ["GET", "/v1/journals"],
  "runs.list": ["GET", "/v1/runs"],
  "runs.get": ["GET", "/v1/runs/{id}"],
  "runs.head": ["GET", "/v1/runs/{id}/head"],
  "runs.journal": ["GET", "/v1/runs/{id}/journal"],
  "runs.tree": ["GET", "/v1/runs/{id}/tree"],
  "runs.terms": ["GET", "/v1/runs/{id}/terms"],
  "runs.budgets": ["GET", "/v1/runs/{id}/budgets"],
  "runs.published": ["GET", "/v1/runs/{id}/published"],
  "runs.blob": ["GET", "/v1/runs/{id}/blobs/{blob}"],
  "runs.streams": ["GET", "/v1/runs/{id}/streams"],
  "runs.stream": ["GET", "/v1/runs/{id}/streams/{name}"],
  "runs.conversation": ["GET", "/v1/runs/{id}/conversation"],
  "runs.modelUsage": ["GET", "/v1/model-usage"],
  "runs.reply": ["GET", "/v1/runs/{id}/replies/{n}"],
  "runs.signal": ["POST", "/v1/runs/{id}/signals"],
  "runs.cancel": ["POST", "/v1/runs/{id}/cancel"],
  "runs.takeover": ["POST", "/v1/runs/{id}/takeover"],
  "runs.redrive": ["POST", "/v1/runs/{id}/redrive"],
  "runs.forkPlan": ["GET", "/v1/runs/{id}/fork"],
  "runs.fork": ["POST", "/v1/runs/{id}/fork"],
  "runs.erase": ["POST", "/v1/runs/{id}/erase"],
  "builds.list": ["GET", "/v1/builds"],
  "builds.runs": ["GET", "/v1/builds/{build}/runs"],
  "builds.current": ["POST", "/v1/builds/{build}/current"],
  "builds.move": ["POST", "/v1/builds/{build}/move"],
  "effects.list": ["GET", "/v1/effects"],
  "inDoubt.list": ["GET", "/v1/in-doubt"],
  "effects.resolve": ["POST", "/v1/runs/{id}/effects/{pos}/{sub}/resolve"],
  "gates.list": ["GET", "/v1/gates"],
  "timers.list": ["GET", "/v1/timers"],
  "businessKeys.get": ["GET", "/v1/business-keys"],
  "leases.list": ["GET", "/v1/leases"],
  "leases.terms": ["GET", "/v1/leases/{name}/terms"],
  "leases.takeover": ["POST", "/v1/leases/{name}/takeover"],
  "leases.pause": ["POST", "/v1/leases/{name}/pause"],
  "leases.resume": ["POST", "/v1/leases/{name}/resume"],
  "queues.list": ["GET", "/v1/queues"],
  "queues.keys": ["GET", "/v1/queues/{name}/keys"],
  "queues.runs": ["GET", "/v1/queues/{name}/runs"],
  "queues.pause": ["POST", "/v1/queues/{name}/pause"],
  "queues.resume": ["POST", "/v1/queues/{name}/resume"],
  "queues.set": ["PUT", "/v1/queues/{name}/override"],
  "queues.reset": ["DELETE", "/v1/queues/{name}/override"],
  "runs.queue": ["GET", "/v1/runs/{id}/queue"],
  "sinks.list": ["GET", "/v1/sinks"],
  "sinks.deadLetters": ["GET", "/v1/sinks/{name}/dead-letters"],
  "sinks.replay": ["POST", "/v1/sinks/{name}/replay"],
  "sinks.discard": ["POST", "/v1/sinks/{name}/discard"],
  "sinks.pause": ["POST", "/v1/sinks/{name}/pause"],
  "sinks.resume": ["POST", "/v1/sinks/{name}/resume"],
  "sinks.rewind": ["POST", "/v1/sinks/{name}/rewind"],
  "sinks.forget": ["POST", "/v1/sinks/{name}/forget"],
  "processes.list": ["GET", "/v1/processes"],
  "values.get": ["GET", "/v1/values/{key}"],
  "values.put": ["PUT", "/v1/values/{key}"],
  "values.list": ["GET", "/v1/values"],
  "values.history": ["GET", "/v1/values/{key}/history"],
  "schedules.list": ["GET", "/v1/schedules"],
  "store.journal": ["POST", "/v1/store/journal"],
  "store.wakeHints": ["GET", "/v1/store/wake-hints"],
  healthz: ["GET", "/healthz"],
  audit: ["GET", "/v1/audit"],
} as const satisfies { [N in RouteName]?: readonly [Contract[N]["method"], Contract[N]["path"]] };

export type CallName = keyof typeof calls;
/** A response as JSON: tokens are decimal strings. */
export type Wire<N extends RouteName> = z.input<Contract[N]["answer"]>;

export type Run = Wire<"runs.get">;
export type Lease = Wire<"leases.get">;
export type Term = Wire<"runs.terms">["terms"][number];
export type JournalRecord = Wire<"runs.journal">["records"][number];
export type Effect = Wire<"effects.list">["effects"][number];
export type InDoubt = Wire<"inDoubt.list">["inDoubt"][number];
export type Tree = Wire<"runs.tree">;
export type Gate = Wire<"gates.list">["gates"][number];
export type ConversationPage = Wire<"runs.conversation">;
export type Turn = ConversationPage["turns"][number];
export type TurnCall = Turn["calls"][number];
export type TurnGate = NonNullable<TurnCall["approval"]>;
export type TurnChild = NonNullable<TurnCall["children"]>[number];
export type ModelUsage = Wire<"runs.modelUsage">["runs"][number];
export type Timer = Wire<"timers.list">["timers"][number];
export type ForkPlan = Wire<"runs.forkPlan">;
export type Queue = Wire<"queues.list">["queues"][number];
export type QueueKey = Wire<"queues.keys">["keys"][number];
export type QueueSlot = Wire<"queues.runs">["runs"][number];
export type QueueReason = NonNullable<Wire<"runs.queue">["position"]>["reasons"][number];
export type QueueChange = z.input<Contract["queues.set"]["body"]>["change"];
export type RateLimit = NonNullable<Queue["limits"]["rate"]>;
export type PauseOf = NonNullable<Queue["paused"]>;
export type Build = Wire<"builds.list">["builds"][number];
export type MoveResult = Wire<"builds.move">["runs"][number];
export type Sink = Wire<"sinks.list">["sinks"][number];
export type DeadLetter = Wire<"sinks.deadLetters">["letters"][number];
export type SinkNeed = Wire<"overview">["sinks"][number];
export type Identity = Wire<"whoami">;

type PartOf<N extends RouteName, P extends "params" | "query" | "body"> = Contract[N] extends {
  readonly [K in P]: infer S extends z.ZodType;
}
  ? z.input<S>
  : never;
/** The contract names the fields; they travel as text. */
type Texts<Fields, Text> = { readonly [F in keyof Fields]?: Text | undefined };

export interface CallOptions<N extends CallName> {
  readonly params?: Texts<PartOf<N, "params">, string | number>;
  readonly query?: Texts<PartOf<N, "query">, string | number | boolean>;
  readonly body?: PartOf<N, "body">;
  /** Idempotency key: a second click, or a retry after a lost response, repeats the same call. */
  readonly key?: string;
  readonly signal?: AbortSignal;
}

/** An error response, with the server's code, message and advice. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly next: string;

  constructor({ status, code, detail, next }: Pick<Problem, "status" | "code" | "detail" | "next">) {
    super(detail);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.next = next;
  }
}

const tokenName = "tape.token";

export const storedToken = (): string | null => sessionStorage.getItem(tokenName);
export function storeToken(token: string | null): void {
  if (token === null) sessionStorage.removeItem(tokenName);
  else sessionStorage.setItem(tokenName, token);
}

/** Returns once the headers are here; the caller reads the body. */
export async function request<N extends CallName>(name: N, options: CallOptions<N>): Promise<Response> {
  const [method, path] = calls[name];
  const { body, key, signal } = options;
  const params: Readonly<Record<string, unknown>> = options.params ?? {};
  const query: Readonly<Record<string, unknown>> = options.query ?? {};
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, param: string) => encodeURIComponent(String(params[param])));
  const pairs = Object.entries(query).flatMap(([field, value]) =>
    value === undefined || value === "" ? [] : [[field, String(value)]],
  );
  const search = pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`;
  const token = storedToken();
  const response = await fetch(`${filled}${search}`, {
    method,
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(key === undefined ? {} : { "idempotency-key": key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new ApiError({
      status: 0,
      code: "UNREACHABLE",
      detail: "no response from the server",
      next: "Check that it is running. This page retries automatically.",
    });
  });
  if (response.ok) return response;
  const problem = (await response.json().catch(() => ({}))) as Partial<Problem>;
  throw new ApiError({
    status: response.status,
    code: problem.code ?? `HTTP ${response.status}`,
    detail: problem.detail ?? "the server returned an error without details",
    next: problem.next ?? "See the server's log.",
  });
}

export async function call<N extends CallName>(name: N, options: CallOptions<N> = {}): Promise<Wire<N>> {
  const response = await request(name, await withSealed(name, options));
  return opened((await response.json()) as Wire<N>);
}

/** A value that goes to a run is encrypted before the server gets it, if there is a codec endpoint. */
async function withSealed<N extends CallName>(name: N, options: CallOptions<N>): Promise<CallOptions<N>> {
  const { body, params } = options as { body?: Record<string, unknown>; params?: { id?: unknown } };
  const run = String(params?.id);
  if (name === "runs.signal" && body !== undefined) {
    return { ...options, body: { ...body, value: await sealedFor(run, body.value) } as never };
  }
  if (name !== "effects.resolve" || body === undefined) return options;
  const resolution = body.resolution as Record<string, unknown>;
  if (resolution.value === undefined) return options;
  const sealed = { ...resolution, value: await sealedFor(run, resolution.value) };
  return { ...options, body: { ...body, resolution: sealed } as never };
}
