import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { systemClock } from "../../src/base/clock.ts";
import { effect } from "../../src/sdk/effect.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, type Runner, workflow } from "../../src/sdk/workflow.ts";

/** Options of a worker process, passed on its command line. */
export interface WorkerOptions {
  readonly url: string;
  /** The world: a file with one line per payment. "Once" is judged by this file, never by our journal. */
  readonly ledger: string;
  readonly ttlMs: number;
  /** It stops in the middle of every order; the order's number decides where. */
  readonly halts: boolean;
  /** Observations are inconclusive, so that only evidence can settle an effect in doubt. */
  readonly blind: boolean;
  /** WorkerOptions to start. */
  readonly start: number;
  /** A payment returns only once this file exists. */
  readonly answersAt?: string;
}

export interface Line {
  readonly order: number;
  readonly key: string;
  readonly token: string;
  readonly pid: number;
}

export function readLedger(file: string): Line[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Line);
}

/** Its existence means that the sender is dead: what is not in the ledger now will never be, so absence is final. */
export const closedFor = (ledger: string): string => `${ledger}.closed`;

/** Where a halting worker leaves an order; all four must survive a kill. */
export type Place = "first step" | "before the payment" | "after the payment" | "last step";
const places: readonly Place[] = ["first step", "before the payment", "after the payment", "last step"];
export const placeOf = (order: number): Place => places[order % 4]!;

const never = (): Promise<void> => new Promise(() => {});

/** WorkerOptions are paid by an inline effect that may happen only once and that can be observed in the ledger. */
export function buildRunner(options: WorkerOptions): Runner {
  const { ledger, halts, blind, answersAt } = options;
  const stopsAt = (order: number, place: Place): Promise<void> =>
    halts && placeOf(order) === place ? never() : Promise.resolve();

  const pay = effect(
    "pay",
    async ({ order }: { order: number }, fx) => {
      await stopsAt(order, "before the payment");
      const line: Line = { order, key: fx.key, token: String(fx.token), pid: process.pid };
      appendFileSync(ledger, `${JSON.stringify(line)}\n`); // one small O_APPEND write is atomic
      await stopsAt(order, "after the payment");
      while (answersAt !== undefined && !existsSync(answersAt)) await systemClock.sleep(10);
      return `receipt ${order}`;
    },
    {
      businessKey: ({ order }) => `order ${order}`,
      observe: ({ order }, fx) => {
        if (blind) return outcome.inconclusive("the ledger cannot be read");
        const found = readLedger(ledger).some((line) => line.order === order && line.key === fx.key);
        return found ? outcome.confirmed(`receipt ${order}`) : outcome.absent({ final: existsSync(closedFor(ledger)) });
      },
      timeout: "60s", // no payment times out, however busy the machine
      settleDelay: 0,
    },
  );

  const checkout = workflow("checkout", async (tape, { order }: { order: number }) => {
    await tape.step("reserve", () => stopsAt(order, "first step"));
    // A payment that certainly did not happen is repeated under a new key.
    let paid = await tape.attempt(pay.with({ order }));
    while (paid.status !== "confirmed") paid = await tape.attempt(pay.with({ order }));
    await tape.step("book", () => stopsAt(order, "last step"));
    return paid.value;
  });
  return createRunner({ workflows: [checkout], effects: [pay] });
}
