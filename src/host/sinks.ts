import { defined } from "../base/defined.ts";
import type { DeadLetter, LetterState } from "../model/dead-letter.ts";
import { notFound } from "../model/not-found.ts";
import type { SinkPause } from "../model/sink-checkpoint.ts";
import type { SinkState } from "../model/sink-state.ts";
import type { Operator } from "../operator/operator.ts";
import type { AuditInfo, OperatorReason, Page, SinkRow, Store } from "../store/contract/store.ts";
import { readList } from "../store/read-all.ts";

/** Where a sink is, for operators. */
export interface SinkView {
  readonly name: string;
  /** "retrying": its receiver does not accept events now. "off": no process holds its lease. */
  readonly state: SinkState;
  /** The process that sends its events, and what it last reported. */
  readonly holder?: string;
  /** A remark of the fan-out. */
  readonly note?: string;
  /** Milliseconds since the first record that it has not passed was written; 0: it has passed all of them. */
  readonly lagMs: number;
  /** When the last record that it has passed was written; undefined: it has no checkpoint, or begins at the start. */
  readonly passedAt?: number;
  readonly paused?: SinkPause;
  /** Dead letters without an order. */
  readonly openLetters: number;
  /** Runs that ended more than an hour ago and that pruning keeps for this sink. */
  readonly keptRuns: number;
}

/**
 * Sinks as operators see and change them.
 *
 * @example
 * for (const { name, state, lagMs } of await app.sinks.list()) console.log(name, state, lagMs);
 */
export class Sinks {
  readonly #store: Store;
  readonly #tenant: string;
  readonly #operator: Pick<Operator, "changeSink">;
  readonly #label: string;

  constructor(store: Store, tenant: string, operator: Pick<Operator, "changeSink">, label: string) {
    this.#store = store;
    this.#tenant = tenant;
    this.#operator = operator;
    this.#label = label;
  }

  /** Every sink that has ever run, by name. */
  async list(): Promise<SinkView[]> {
    return (await this.#rows()).map(viewOf);
  }

  /** One sink by its name. */
  async get(name: string): Promise<SinkView> {
    const row = (await this.#rows()).find(({ sink }) => sink === name);
    if (row === undefined) throw notFound("sink", name);
    return viewOf(row);
  }

  /** Events that the sink refused, oldest first. */
  deadLetters(
    name: string,
    page: { readonly state?: LetterState; readonly after?: string; readonly limit?: number } = {},
  ): Promise<Page<DeadLetter>> {
    return this.#store.read.deadLetters(this.#tenant, name, page);
  }

  /** Has dead letters sent again: these events, or all open ones. Returns how many. */
  replay(name: string, action: OperatorReason, events?: readonly string[]): Promise<number> {
    return this.#store.intake.settleLetters(this.#tenant, name, "REPLAY", events, this.#audit(action));
  }

  /** Drops dead letters, all or the named ones, and returns how many. */
  discard(name: string, action: OperatorReason, events?: readonly string[]): Promise<number> {
    return this.#store.intake.settleLetters(this.#tenant, name, "DISCARDED", events, this.#audit(action));
  }

  /** Its fan-out sends nothing until it is resumed. */
  pause(name: string, action: OperatorReason): Promise<void> {
    return this.#operator.changeSink(name, { to: "pause" }, this.#audit(action));
  }

  /** Lets a paused sink receive events again. */
  resume(name: string, action: OperatorReason): Promise<void> {
    return this.#operator.changeSink(name, { to: "resume" }, this.#audit(action));
  }

  /** Continues before this event, from the "start", or from "now". */
  rewind(name: string, event: string, action: OperatorReason): Promise<void> {
    return this.#operator.changeSink(name, { to: "rewind", event }, this.#audit(action));
  }

  /** Removes its checkpoint: it holds back no pruning. Remove its configuration first. */
  forget(name: string, action: OperatorReason): Promise<void> {
    return this.#operator.changeSink(name, { to: "forget" }, this.#audit(action));
  }

  #rows(): Promise<SinkRow[]> {
    return readList(
      (above) => this.#store.read.sinks(this.#tenant, { above }),
      ({ sink }) => sink,
    );
  }

  #audit({ by = this.#label, reason }: OperatorReason): AuditInfo {
    return { by, reason };
  }
}

function viewOf({ sink, lease, state, lagMs, passedAt, paused, openLetters, keptRuns }: SinkRow): SinkView {
  return {
    name: sink,
    state,
    ...(lease.label !== null && { holder: lease.label }),
    ...(lease.progressNote !== null && { note: lease.progressNote }),
    lagMs,
    ...defined({ passedAt, paused }),
    openLetters,
    keptRuns,
  };
}
