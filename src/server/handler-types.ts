import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { ServedWorkflows } from "../engine/served.ts";
import type { Credential } from "../model/records.ts";
import type { CallOf, Contract, ResponseOf, RouteName } from "../protocol/contract.ts";
import type { Role } from "../protocol/route.ts";
import type { Transport, WireRequest } from "../protocol/transport.ts";
import type { Runner } from "../sdk/workflow.ts";
import type { AuditInfo, IntakeOps, Page, Store } from "../store/contract/store.ts";
import type { FailedSignIns } from "./failed-sign-ins.ts";
import type { LagHistory } from "./lag-history.ts";
import type { Operators } from "./operators.ts";
import type { Service } from "./service-metrics.ts";
import type { Turns } from "./turns.ts";

/** The caller, identified by the credential alone: no request names its tenant or role. */
export interface Caller {
  readonly tenant: string;
  readonly role: Role;
  /** The credential's name or, without credentials, this server's label. */
  readonly name: string;
  /** The credential's id; undefined: this server requires none. */
  readonly token: string | undefined;
}

/** One call in progress: the caller, and the parts of HTTP that handlers need. */
export interface Call extends Caller {
  /** A credential was sent, or none is required. Only then does an open route return more than its status. */
  readonly named: boolean;
  /** Aborts when the caller disconnects, or a stream must end because the server drains. */
  readonly signal: AbortSignal;
  readonly key: string | undefined;
  /** The last event that a browser has received, by its Last-Event-ID. */
  readonly resumeAfter?: number;
  /** Of the request, with lower-case names; for a protocol that has headers of its own. */
  readonly headers: WireRequest["headers"];
  /** The credential as the audit log records it. */
  readonly via: Credential;
  /** Called before a long wait: the call then takes a place among the waiting calls, not the working ones. */
  readonly waits: () => void;
  /** Writes of this call. With an Idempotency-Key a repeated call returns the first result. */
  readonly intake: IntakeOps;
}

/** The pages of a stream, each with all lines that are ready. */
export type Pages<N extends RouteName> = AsyncIterable<readonly ResponseOf<N>[]>;

/** A stream fails before its first line, or not at all. */
export type Handler<N extends RouteName> = (
  call: CallOf<N>,
  who: Call,
) => Promise<Contract[N] extends { readonly stream: true } ? Pages<N> : ResponseOf<N>>;

export type Handlers = { readonly [N in RouteName]: Handler<N> };
/** The handlers of one group of routes. */
export type HandlersOf<G> = Pick<Handlers, Extract<keyof G, RouteName>>;

/** Lifetimes of tokens that are created through this server. */
export interface TokenLifetimes {
  /** Default lifetime; absent: `maxMs`, or without end. */
  readonly defaultMs?: number;
  readonly maxMs?: number;
}

/** What handlers work with. */
export interface ServerDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly operators: Operators;
  readonly service: Service;
  readonly history: LagHistory;
  readonly lifetimes: TokenLifetimes;
  readonly turns: Turns;
  readonly served: ServedWorkflows;
  /** Counts callbacks with a wrong token, by address. */
  readonly failures: FailedSignIns;
  /** Known workflows and gates: their schemas reject at once what a worker would reject. */
  readonly runner: Runner;
  /** This server, for a handler that makes further calls as its caller. */
  readonly exchange: Transport;
  /** Audits a call that was refused for its role. */
  readonly forbidden: (who: Call, what: string, needs: Role) => void;
}

/** Author, reason and credential of an action, for the audit log. */
export function auditInfoOf(who: Call, action: { readonly by?: string; readonly reason: string }): AuditInfo {
  return { by: actorOf(who, action.by), reason: action.reason, via: who.via };
}

/** The author of an action: the credential, and on whose behalf. No caller can record another credential's name. */
export function actorOf(who: Caller, by: string | undefined): string {
  if (by === undefined) return who.name;
  return who.token === undefined ? by : `${who.name} for ${by}`;
}

/** The cursor of the next page. */
export function nextOf<T>(page: Page<T>, cursorOf: (row: T) => string): { next?: string } {
  const last = page.at(-1);
  return page.more === true && last !== undefined ? { next: cursorOf(last) } : {};
}

/** A page as a response: its rows, and whether there are more. */
export function listed<K extends string, T>(name: K, page: Page<T>): { [Name in K]: T[] } & { more?: boolean } {
  const rows = { [name]: page } as { [Name in K]: T[] };
  return page.more === true ? { ...rows, more: true } : rows;
}
