import { fingerprint } from "../base/canonical.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { type Log, silentLog } from "../base/log.ts";
import { type Random, systemRandom } from "../base/random.ts";
import { ServedWorkflows } from "../engine/served.ts";
import type { Identity } from "../lease/identity.ts";
import { TapeError } from "../model/errors.ts";
import type { RouteName } from "../protocol/contract.ts";
import { mayDo, type Role, type Route } from "../protocol/route.ts";
import type { Transport, WireRequest, WireResponse } from "../protocol/transport.ts";
import { createRunner, type Runner } from "../sdk/workflow.ts";
import type { IntakeOps, Store } from "../store/contract/store.ts";
import { limitKey } from "./address.ts";
import { Admission, type CountedCaller, type Place } from "./admission.ts";
import { Auditor } from "./auditor.ts";
import { Bodies, type BodyRoom, maxBytes } from "./bodies.ts";
import { decodePart, jsonOf, queryOf, tooLarge } from "./body.ts";
import type { CallProgress, HandledRequest } from "./call-progress.ts";
import { extraCalls } from "./cost.ts";
import { type Dashboard, pageResponse } from "./dashboard-page.ts";
import { FailedSignIns } from "./failed-sign-ins.ts";
import { foreignBody } from "./foreign-body.ts";
import type { Call, Caller, Handlers, TokenLifetimes } from "./handler-types.ts";
import { refusedMethod } from "./handlers/mcp.ts";
import { handlersOf } from "./handlers.ts";
import { LagHistory } from "./lag-history.ts";
import { defaultServerLimits, type ServerLimits } from "./limits.ts";
import { Operators } from "./operators.ts";
import { checkOrigin, type Entry, isNavigation } from "./origin.ts";
import { pageOf, pageOrigins, readableBy } from "./page-origins.ts";
import { ParseTurns } from "./parse-turns.ts";
import { refusalLog } from "./refusal-log.ts";
import { jsonResponse, lasting, problemResponse, refusalOf, suited, untilRead } from "./response.ts";
import { longListOf, responseOf, slicedResponse } from "./route-response.ts";
import { matchRoute, type RouteMatch } from "./router.ts";
import { Service } from "./service-metrics.ts";
import { StreamTokens } from "./stream-access.ts";
import { StreamQuota } from "./stream-quota.ts";
import { streamResponse } from "./stream-response.ts";
import { type Credentials, noAuth, TokenAuth } from "./token-auth.ts";
import { Turns } from "./turns.ts";
import { viaOf } from "./via.ts";

export interface ServerOptions {
  readonly store: Store;
  readonly identity: Identity;
  readonly version: string;
  /** none: every caller is admin of `tenant`. */
  readonly credentials: "required" | "none";
  /** With credentials none: the one caller, if it is not admin. */
  readonly caller?: Omit<Caller, "tenant">;
  /** The address under which browsers reach this server through a proxy. */
  readonly origin?: string;
  /** Origins of pages that may read streams, each with a token for its stream. */
  readonly streamOrigins?: string;
  /** `id.secret` of an admin of `tenant`, for creating the first tokens. */
  readonly bootstrap?: string;
  /** The tenant that operates the server. */
  readonly tenant?: string;
  readonly limits?: Partial<ServerLimits>;
  /** Lifetimes of tokens that are created here. */
  readonly lifetimes?: TokenLifetimes;
  /** The dashboard for browsers; absent: a page that lists the API. */
  readonly dashboard?: Dashboard;
  /** `durable-tape dev` serves; `whoami` returns it. */
  readonly dev?: boolean;
  /** Where the dashboard has payloads decoded; `whoami` returns it. */
  readonly codecEndpoint?: string;
  /** Schemas that validate inputs and signals on receipt, and effects that an operator can settle at once. */
  readonly runner?: Runner;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
}

const keyText = /^[\x21-\x7e]{1,255}$/;
const offsetText = /^\d{1,15}$/;
/** Reads the body, whose bytes count against the capacity for bodies. */
export type ReadBody = (room: BodyRoom) => Promise<Uint8Array | undefined>;
type CallerState = Pick<Call, "named" | "waits"> & Caller;
type AnyHandler = (call: unknown, who: Call) => Promise<unknown>;

/**
 * The server without its socket: a request goes in, a response comes out. It checks a request in this order: route,
 * origin, drain, credential, role, rate, room, body, fields; then a handler receives it. Except for the samples of the
 * overview, it keeps no state between calls that another replica would miss.
 */
export class TapeServer {
  readonly limits: ServerLimits;
  readonly service: Service;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #credentials: Credentials;
  readonly #mode: "required" | "none";
  readonly #entry: Entry;
  readonly #auditor: Auditor;
  /** The bootstrap token's id. */
  readonly #bootstrap: string | undefined;
  readonly #refusals: ReturnType<typeof refusalLog>;
  readonly #admission: Admission;
  readonly #streamQuota: StreamQuota;
  readonly #streamTokens: StreamTokens;
  readonly #bodies: Bodies;
  readonly #parseTurns: ParseTurns;
  readonly #turns: Turns;
  readonly #payloadBytes: number;
  /** The OpenAPI document: it takes longer to encode than any other response, and never changes. */
  #described: Promise<WireResponse> | undefined;
  readonly #handlers: Handlers;
  readonly #operators: Operators;
  readonly #history: LagHistory;
  readonly #dashboard: Dashboard | undefined;
  readonly #streamOrigins: ReadonlySet<string>;

  constructor(options: ServerOptions) {
    const { store, identity, version, credentials, bootstrap, tenant = "default" } = options;
    const { clock = systemClock, random = systemRandom, log = silentLog } = options;
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.limits = { ...defaultServerLimits, ...options.limits };
    this.#mode = credentials;
    this.#entry = { credentials, origin: options.origin };
    this.#streamOrigins = pageOrigins(options.streamOrigins ?? "");
    this.#dashboard = options.dashboard;
    this.#credentials =
      credentials === "none"
        ? noAuth({ tenant, role: "admin", name: identity.label, token: undefined, ...options.caller })
        : new TokenAuth({ store, clock, log, bootstrap, tenant, failedSignIns: this.limits.failedSignIns });
    this.#auditor = new Auditor({ store, clock, log, home: tenant });
    this.#bootstrap = bootstrap?.split(".", 1)[0];
    this.#payloadBytes = store.limits.payloadBytes;
    this.#refusals = refusalLog(log, clock);
    this.#admission = new Admission(this.limits, clock);
    this.#streamQuota = new StreamQuota(store, clock, this.#admission);
    this.#bodies = new Bodies(this.limits);
    this.#parseTurns = new ParseTurns(clock);
    this.#turns = new Turns(clock);
    this.service = new Service({
      clock,
      version,
      label: identity.label,
      home: tenant,
      dev: options.dev ?? false,
      codecEndpoint: options.codecEndpoint,
    });
    const runner = options.runner ?? createRunner({ workflows: [] });
    this.#operators = new Operators({ store, identity, clock, random, log, runner });
    this.#history = new LagHistory({ read: store.read, clock, log });
    const { service } = this;
    const [operators, history] = [this.#operators, this.#history];
    const served = new ServedWorkflows(store, clock);
    const [turns, lifetimes] = [this.#turns, options.lifetimes ?? {}];
    const failures = new FailedSignIns(this.limits.failedSignIns, clock);
    this.#streamTokens = new StreamTokens(store.read, failures);
    const parts = { operators, service, history, turns, served, runner, lifetimes, failures };
    const forbidden = (who: Call, what: string, needs: Role): void => this.#auditor.forbidden(who, what, needs);
    this.#handlers = handlersOf({ store, clock, random, log, ...parts, exchange: this.exchange, forbidden });
  }

  /** Handles a request completely, without a socket. */
  readonly exchange: Transport = async (request) => {
    const { response, written } = await this.take(request, async (room) => {
      const bytes = request.body?.length ?? 0;
      if (bytes > room.maxBytes) throw tooLarge(room.maxBytes);
      room.take(bytes);
      return request.body;
    });
    written();
    return response;
  };

  /**
   * Reads the body only after all earlier checks have passed and there is room for it. The call keeps its place until
   * its response is written.
   */
  async take(request: WireRequest, body: ReadBody): Promise<HandledRequest> {
    const { service } = this;
    const startedAt = service.callStarted();
    const progress: CallProgress = { route: "none", leave: () => {} };
    let response: WireResponse | undefined;
    let refusal: TapeError | undefined;
    try {
      response = await suited(await this.#respond(request, body, progress), request.headers);
    } catch (error) {
      refusal = refusalOf(error);
      this.#audit(refusal, progress, request);
      if (refusal.code === "TAPE_QUOTA") service.quotaRefused(String(refusal.details.quota));
      this.#logRefusal(refusal, progress);
      response = problemResponse(refusal);
      progress.leave();
    } finally {
      service.callEnded(startedAt, progress.route, response?.status ?? 500, refusal?.code);
    }
    if (progress.page !== undefined) response = readableBy(progress.page, response);
    // A stream frees its capacity when it ends, for any reason.
    return { response, written: response.body instanceof Uint8Array ? progress.leave : () => {} };
  }

  /** Takes no more calls, ends the streams, and waits for calls in progress. false: some took longer. */
  drain(withinMs: number): Promise<boolean> {
    return this.service.drain(withinMs);
  }

  close(): void {
    this.#operators.close();
    this.#history.close();
  }

  async #respond(request: WireRequest, body: ReadBody, progress: CallProgress): Promise<WireResponse> {
    const matched = matchRoute(request.method, request.url);
    if (matched === undefined) return refusedMethod(request) ?? this.#page(request, progress);
    const { route } = matched;
    progress.route = route.name;
    progress.page = pageOf(this.#streamOrigins, matched, request);
    checkOrigin(request, this.#entry, progress.page);
    if (this.service.draining && route.role !== "open") {
      throw new TapeError("TAPE_DRAINING", "the server is stopping");
    }
    const named =
      route.foreign !== true &&
      (route.role !== "open" || this.#mode === "none" || request.headers.authorization !== undefined);
    const caller = named ? await this.#callerOf(matched, request) : anonymous;
    progress.who = caller;
    if (caller.token !== undefined && caller.token === this.#bootstrap) {
      this.#auditor.bootstrapUsed({ ...caller, via: viaOf(caller, request) });
    }
    if (route.role !== "open" && !mayDo(caller.role, route.role)) {
      const message = `${route.name} needs the role ${route.role}, but the token has ${caller.role}`;
      throw new TapeError("TAPE_FORBIDDEN", message, { needs: route.role });
    }
    const counted =
      caller === anonymous ? anonymousAt(route.name, request) : { tenant: caller.tenant, member: caller.token };
    const place = this.#enter(route, caller === anonymous, counted);
    const room = this.#bodies.room(caller.tenant, caller.token, maxBytes(route, this.limits, this.#payloadBytes));
    progress.leave = () => {
      place.leave();
      room.leave();
    };
    const json = route.body === undefined ? undefined : await this.#json(request, route, body, room);
    // A lease depends on its renewals, so they do not wait for their tenant's turn.
    const turn = caller === anonymous || route.name === "store.renew" ? undefined : this.#turns.next(caller.tenant);
    if (turn !== undefined) await turn;
    const call = {
      ...(route.params !== undefined && { params: decodePart("path", route.params, matched.params) }),
      ...this.#query(matched),
      ...(route.body !== undefined && { body: decodePart("body", route.body, json) }),
    };
    const extra = caller === anonymous ? 0 : extraCalls(route, call, this.#store.limits.pageRows);
    // Calls that a lease depends on are never slowed down for their size, but large ones take more capacity.
    if (route.urgent === true) place.widen(extra);
    else this.#admission.charge(counted, extra);
    const who = { ...caller, named, waits: () => place.move("waiters") };
    if (route.stream === true) await this.#streamQuota.check(caller.tenant);
    if (route.stream === true) return this.#stream(request, matched, call, who, progress.leave);
    const result = await this.#handle(route.name, call, this.#call(request, route, call, who));
    room.leave();
    if (route.raw === true) return untilRead(result as WireResponse, progress.leave);
    const long = this.#turns.shared ? longListOf(result) : undefined;
    if (long !== undefined) return slicedResponse(route, long, () => this.#turns.next(caller.tenant));
    if (route.name !== "openapi") return responseOf(route, result);
    this.#described ??= lasting(jsonResponse(result));
    return this.#described;
  }

  async #callerOf(matched: RouteMatch, request: WireRequest): Promise<Caller> {
    const { headers, from } = request;
    return (await this.#streamTokens.caller(matched, request)) ?? this.#credentials.caller(headers.authorization, from);
  }

  async #page(request: WireRequest, progress: CallProgress): Promise<WireResponse> {
    const place = this.#enter({}, true, anonymousAt("page", request));
    progress.leave = () => place.leave();
    const page = await pageResponse(request, this.#dashboard, this.service.codecEndpoint);
    if (page === undefined) throw new TapeError("TAPE_NO_ROUTE", "no such route");
    const { "sec-fetch-site": _site, ...headers } = request.headers;
    checkOrigin(isNavigation(request) ? { headers } : request, this.#entry);
    return page;
  }

  #enter(route: Pick<Route, "stream" | "urgent"> & { name?: RouteName }, open: boolean, counted: CountedCaller): Place {
    if (route.name !== undefined && probes.has(route.name)) return noPlace;
    const room = open ? "open" : route.urgent === true ? "renewals" : "requests";
    this.#admission.pace(room, counted);
    return this.#admission.enter(route.stream === true ? "streams" : room, counted);
  }

  async #json({ headers }: WireRequest, { foreign }: Route, body: ReadBody, room: BodyRoom): Promise<unknown> {
    const deps = { limits: this.limits, room, clock: this.#clock, turns: this.#parseTurns };
    return (foreign === true ? foreignBody : jsonOf)(headers, await body(room), deps);
  }

  #query({ route, query }: RouteMatch): { query?: unknown } {
    if (route.query !== undefined) return { query: decodePart("query", route.query, queryOf(query)) };
    if (query === "") return {};
    throw new TapeError("TAPE_BAD_INPUT", `query: ${route.name} takes no query`, { field: "query" });
  }

  #call(request: WireRequest, route: RouteMatch["route"], call: unknown, who: CallerState): Call {
    const store = this.#store;
    const { drainSignal } = this.service;
    const key = route.repeat === "key" ? request.headers["idempotency-key"] : undefined;
    if (key !== undefined && !keyText.test(key)) {
      throw new TapeError("TAPE_BAD_INPUT", "Idempotency-Key is 1 to 255 visible characters", {
        field: "idempotency-key",
      });
    }
    const { tenant } = who;
    return {
      ...who,
      key,
      headers: request.headers,
      via: viaOf(who, request),
      get intake(): IntakeOps {
        if (key === undefined) return store.intake;
        return store.once({ tenant, key, hash: fingerprint({ route: route.name, call }) });
      },
      get signal(): AbortSignal {
        return request.signal === undefined ? drainSignal : AbortSignal.any([request.signal, drainSignal]);
      },
    };
  }

  #stream(request: WireRequest, matched: RouteMatch, call: unknown, who: CallerState, leave: () => void) {
    const { route } = matched;
    const { key, via } = this.#call(request, route, call, who);
    const last = request.headers["last-event-id"];
    const resumeAfter = last !== undefined && offsetText.test(last) ? { resumeAfter: Number(last) } : {};
    const { intake } = this.#store;
    const open = (signal: AbortSignal) =>
      this.#handle(route.name, call, {
        ...who,
        key,
        headers: request.headers,
        via,
        intake,
        signal,
        ...resumeAfter,
      }) as Promise<AsyncIterable<readonly unknown[]>>;
    const own = (): Promise<boolean> => this.#credentials.isStillValid(request.headers.authorization);
    const isValid = this.#streamTokens.validity(matched, request) ?? (this.#mode === "required" ? own : undefined);
    const turn = () => this.#turns.next(who.tenant);
    return streamResponse(request, route, open, { service: this.service, clock: this.#clock, turn, leave, isValid });
  }

  #handle(name: RouteName, call: unknown, who: Call): Promise<unknown> {
    return (this.#handlers[name] as AnyHandler)(call, who);
  }

  /** Records failed sign-ins and forbidden calls for the operators. */
  #audit(refusal: TapeError, { route, who }: { route: RouteName | "none"; who?: Caller }, request: WireRequest): void {
    if (this.#mode === "none") return;
    if (refusal.code === "TAPE_FORBIDDEN" && who !== undefined) {
      this.#auditor.forbidden({ ...who, via: viaOf(who, request) }, route, refusal.details.needs);
    }
    if (refusal.code === "TAPE_UNAUTHENTICATED" && request.headers.authorization !== undefined) {
      this.#auditor.signInFailed(request.from);
    }
  }

  /** One line for each refusal; never a secret, never the request's content. */
  #logRefusal(error: TapeError, { route, who }: CallProgress): void {
    const { code } = error;
    const about = { code, route, tenant: who?.tenant, token: who?.token };
    if (code !== "TAPE_INVARIANT") {
      // The response leaves out the store's message; the log has it.
      if (error.fault === "store") this.#refusals("store", { ...about, error: error.message });
      else this.#refusals(who === undefined ? "stranger" : "caller", about);
      return;
    }
    const { cause } = error;
    const why = cause instanceof Error ? (cause.stack ?? cause.message) : error.message;
    this.#log("error", "server.failed", { ...about, error: why });
  }
}

/** Probes of a load balancer take no place: a flood of other calls must not make this server appear dead. */
const probes: ReadonlySet<RouteName> = new Set(["livez", "readyz"]);

const noPlace: Place = { move() {}, widen() {}, leave() {} };

/** A caller without a credential is counted by route and address. */
const anonymousAt = (tenant: string, { from = "" }: WireRequest): CountedCaller => ({ tenant, member: limitKey(from) });

/** The caller of an open route without a credential. */
const anonymous: Caller = { tenant: "", role: "reader", name: "anonymous", token: undefined };
