import { fingerprint } from "../../src/base/canonical.ts";
import type { Clock } from "../../src/base/clock.ts";
import type { EffectContext } from "../../src/sdk/effect.ts";
import { AckLost, DefiniteFailure, NotSent } from "../../src/sdk/outcomes.ts";

/** What a body tells the world about itself. */
export type WorldCaller = Pick<EffectContext, "runId" | "key" | "token" | "attempt" | "businessKey">;

/** One request that reached the world. */
export interface WorldRequest {
  readonly name: string;
  readonly runId: string;
  readonly key: string;
  readonly token: bigint;
  readonly attempt: number;
  readonly businessKey: string | undefined;
  readonly at: number;
  /** Fingerprint of what was asked for. */
  readonly hash: string;
  /** false: a repetition that the other side recognised by its key. */
  readonly applied: boolean;
  readonly result: unknown;
}

/**
 * How a request goes wrong:
 *
 *   not_sent   it never left
 *   refused    the other side said no, for good
 *   lost       it was carried out and its answer got lost
 *   vanished   it got lost itself, but the sender cannot tell
 */
export type RequestFault = "not_sent" | "refused" | "lost" | "vanished";

/**
 * What the world saw: a record of its own, beside the journal. Whether something happened once is judged here.
 *
 * @example
 * const bank = new WorldLedger();
 * const wire = effect("wire", (a: { invoice: string }, fx) => bank.apply("wire", fx, a, () => ({ paid: true })), {
 *   businessKey: (a) => a.invoice,
 *   observe: (a) => {
 *     const found = bank.find("wire", a.invoice);
 *     return found ? outcome.confirmed(found.result) : outcome.absent();
 *   },
 * });
 */
export class WorldLedger {
  readonly #clock: Pick<Clock, "wall"> | undefined;
  readonly #seen: WorldRequest[] = [];
  #troubles: { readonly name: string; readonly trouble: RequestFault; times: number }[] = [];

  constructor(clock?: Pick<Clock, "wall">) {
    this.#clock = clock;
  }

  get seen(): readonly WorldRequest[] {
    return this.#seen;
  }

  /** The other side does what it is asked to, every time. */
  apply<R>(name: string, caller: WorldCaller, asked: unknown, answer: () => R): R {
    return this.#request(name, caller, asked, answer, false);
  }

  /** The other side recognises a key that it has seen, and answers as it did then. */
  applyOnce<R>(name: string, caller: WorldCaller, asked: unknown, answer: () => R): R {
    return this.#request(name, caller, asked, answer, true);
  }

  /** The next `times` requests of this name go wrong. */
  trouble(name: string, trouble: RequestFault, times = 1): void {
    this.#troubles.push({ name, trouble, times });
  }

  /** What was carried out for a business key. */
  find(name: string, businessKey: string | undefined): WorldRequest | undefined {
    return this.#seen.find((one) => one.applied && one.name === name && one.businessKey === businessKey);
  }

  applied(name?: string): WorldRequest[] {
    return this.#seen.filter((one) => one.applied && (name === undefined || one.name === name));
  }

  /** Keys under which something was carried out more than once. */
  twice(): string[] {
    const keys = this.applied().map(({ name, key }) => `${name} ${key}`);
    return [...new Set(keys.filter((key, k) => keys.indexOf(key) !== k))];
  }

  clear(): void {
    this.#seen.length = 0;
    this.#troubles = [];
  }

  #request<R>(name: string, caller: WorldCaller, asked: unknown, answer: () => R, dedupes: boolean): R {
    const trouble = this.#take(name);
    if (trouble === "not_sent") throw new NotSent();
    if (trouble === "refused") throw new DefiniteFailure(`${name} was refused`);
    if (trouble === "vanished") throw new AckLost("the connection broke");
    const { runId, key, token, attempt, businessKey } = caller;
    const before = dedupes ? this.#seen.find((one) => one.name === name && one.key === key && one.applied) : undefined;
    const result = before === undefined ? answer() : (before.result as R);
    const at = this.#clock?.wall() ?? this.#seen.length;
    const applied = before === undefined;
    this.#seen.push({
      name,
      runId,
      key,
      token,
      attempt,
      businessKey,
      at,
      hash: fingerprint(asked),
      applied,
      result,
    });
    if (trouble === "lost") throw new AckLost();
    return result;
  }

  #take(name: string): RequestFault | undefined {
    const found = this.#troubles.find((one) => one.name === name && one.times > 0);
    if (found !== undefined) found.times--;
    return found?.trouble;
  }
}
