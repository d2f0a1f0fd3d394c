import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { ServedWorkflows } from "../engine/served.ts";
import type { Credential } from "../model/records.ts";
import type { CallOf, Contract, ResponseOf, RouteName } from "../protocol/contract.ts";
import type { Role } from "../protocol/route.ts";
import type { Runner } from "../sdk/workflow.ts";
import type { AuditInfo, IntakeOps, Page, Store } from "../store/contract/store.ts";
import type { LagHistory } from "./lag-history.ts";
import type { Operators } from "./operators.ts";
import type { Service } from "./service-metrics.ts";
import type { Turns } from "./turns.ts";

/** Who calls, by their credential and nothing else: no request names its tenant or its role. */
export interface Caller {
  readonly tenant: string;
  readonly role: Role;
  /** For people: the credential's name, or without credentials this server's label. */
  readonly name: string;
  /** The credential's id; undefined: this server asks nobody for one. */
  readonly token: string | undefined;
}

/** One call on its way: who, and what of HTTP still matters to a handler. */
export interface Call extends Caller {
  /** A credential was shown, or none is needed: on an open route only then more is told than that all is well. */
  readonly named: boolean;
  /** Aborts when the caller has gone, or a stream must end because the server drains. */
  readonly signal: AbortSignal;
  readonly key: string | undefined;
  /** The credential as the audit keeps it. */
  readonly via: Credential;
  /** Said before a long wait: the call then takes room of those that wait, not of those that work. */
  readonly waits: () => void;
  /** Writes of this call: with an Idempotency-Key a repeated one is answered as it was the first time. */
  readonly intake: IntakeOps;
}

/** What a stream has to say next, as many lines as there are. */
export type Pages<N extends RouteName> = AsyncIterable<readonly ResponseOf<N>[]>;

/** A stream refuses before its first line, or not at all. */
export type Handler<N extends RouteName> = (
  call: CallOf<N>,
  who: Call,
) => Promise<Contract[N] extends { readonly stream: true } ? Pages<N> : ResponseOf<N>>;

export type Handlers = { readonly [N in RouteName]: Handler<N> };
/** The handlers of one group of routes. */
export type HandlersOf<G> = Pick<Handlers, Extract<keyof G, RouteName>>;

/** Of tokens that are made through this server. */
export interface TokenLifetimes {
  /** Of one that names no expiry; absent: for ever, or as long as one may. */
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
  /** What is known here of workflows and gates: their schemas refuse at once what a worker would. */
  readonly runner: Runner;
}

/** Who acts, why, and through which credential: what the audit keeps. */
export function auditInfoOf(who: Call, said: { readonly by?: string; readonly reason: string }): AuditInfo {
  return { by: actorOf(who, said.by), reason: said.reason, via: who.via };
}

/** A deed's author: the credential, and whom it acted for. Nobody can write another credential's name into a journal. */
export function actorOf(who: Caller, by: string | undefined): string {
  if (by === undefined) return who.name;
  return who.token === undefined ? by : `${who.name} for ${by}`;
}

/** Where the page after this one begins. */
export function nextOf<T>(page: Page<T>, cursorOf: (row: T) => string): { next?: string } {
  const last = page.at(-1);
  return page.more === true && last !== undefined ? { next: cursorOf(last) } : {};
}

/** A page as an answer: its rows, and whether it was full. */
export function listed<K extends string, T>(name: K, page: Page<T>): { [Name in K]: T[] } & { more?: boolean } {
  const rows = { [name]: page } as { [Name in K]: T[] };
  return page.more === true ? { ...rows, more: true } : rows;
}
