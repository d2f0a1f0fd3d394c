import { fingerprint } from "../../src/base/canonical.ts";
import type { Clock } from "../../src/base/clock.ts";
import type { EffectContext } from "../../src/sdk/effect.ts";
import { AckLost, DefiniteFailure, NotSent } from "../../src/sdk/outcomes.ts";

/**
 * The part of an effect's context that identifies its request to the upstream.
 *
 * @example
 * const pay = (caller: WorldCaller, invoice: string) => bank.apply("pay", caller, { invoice }, () => "paid");
 */
export type WorldCaller = Pick<EffectContext, "runId" | "key" | "token" | "attempt" | "businessKey">;

/**
 * One request that reached the fake upstream.
 *
 * @example
 * const keys = bank.seen.map((request: WorldRequest) => request.key);
 */
export interface WorldRequest {
  readonly name: string;
  readonly runId: string;
  /** The idempotency key of the request. */
  readonly key: string;
  readonly token: bigint;
  readonly attempt: number;
  readonly businessKey: string | undefined;
  readonly at: number;
  /** Fingerprint of the request's arguments. */
  readonly hash: string;
  /** false: a repeated request that the upstream recognised by its key. */
  readonly applied: boolean;
  /** What the upstream answered. */
  readonly result: unknown;
}

/**
 * How a request fails:
 *
 *   not_sent   it never left
 *   refused    the upstream refused it for good
 *   lost       it was applied, and its response was lost
 *   vanished   it was lost itself, but the sender cannot know
 *
 * @example
 * bank.failNext("wire", "lost" satisfies RequestFault);
 */
export type RequestFault = "not_sent" | "refused" | "lost" | "vanished";

/**
 * A fake upstream with a ledger of its own, independent of the journal. Tests judge by it whether something happened
 * once.
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
  #faults: { readonly name: string; readonly fault: RequestFault; times: number }[] = [];

  /** With a clock, its requests have a time. */
  constructor(clock?: Pick<Clock, "wall">) {
    this.#clock = clock;
  }

  /** Every request that arrived, in order. */
  get seen(): readonly WorldRequest[] {
    return this.#seen;
  }

  /** Applies the request every time. */
  apply<R>(name: string, caller: WorldCaller, request: unknown, respond: () => R): R {
    return this.#request(name, caller, request, respond, false);
  }

  /** Applies the request once per key, and returns the first result for repetitions. */
  applyOnce<R>(name: string, caller: WorldCaller, request: unknown, respond: () => R): R {
    return this.#request(name, caller, request, respond, true);
  }

  /** Makes the next `times` requests of this name fail. */
  failNext(name: string, fault: RequestFault, times = 1): void {
    this.#faults.push({ name, fault, times });
  }

  /** The applied request for a business key. */
  find(name: string, businessKey: string | undefined): WorldRequest | undefined {
    return this.#seen.find((one) => one.applied && one.name === name && one.businessKey === businessKey);
  }

  /** The requests that had an effect, all or those of one name. */
  applied(name?: string): WorldRequest[] {
    return this.#seen.filter((one) => one.applied && (name === undefined || one.name === name));
  }

  /** Keys under which a request was applied more than once. */
  duplicates(): string[] {
    const keys = this.applied().map(({ name, key }) => `${name} ${key}`);
    return [...new Set(keys.filter((key, k) => keys.indexOf(key) !== k))];
  }

  /** Forgets all requests. */
  clear(): void {
    this.#seen.length = 0;
    this.#faults = [];
  }

  #request<R>(name: string, caller: WorldCaller, request: unknown, respond: () => R, dedupes: boolean): R {
    const fault = this.#nextFault(name);
    if (fault === "not_sent") throw new NotSent();
    if (fault === "refused") throw new DefiniteFailure(`${name} was refused`);
    if (fault === "vanished") throw new AckLost("the connection broke");
    const { runId, key, token, attempt, businessKey } = caller;
    const before = dedupes ? this.#seen.find((one) => one.name === name && one.key === key && one.applied) : undefined;
    const result = before === undefined ? respond() : (before.result as R);
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
      hash: fingerprint(request),
      applied,
      result,
    });
    if (fault === "lost") throw new AckLost();
    return result;
  }

  #nextFault(name: string): RequestFault | undefined {
    const found = this.#faults.find((one) => one.name === name && one.times > 0);
    if (found !== undefined) found.times--;
    return found?.fault;
  }
}
