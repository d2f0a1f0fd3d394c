import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { systemClock } from "../../src/base/clock.ts";
import { effect } from "../../src/sdk/effect.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, type Runner, workflow } from "../../src/sdk/workflow.ts";

/** What a worker process is told on its command line. */
export interface Orders {
  readonly url: string;
  /** The world: a file of its own, one line per act. "Once" is judged there, never from our journal. */
  readonly ledger: string;
  readonly ttlMs: number;
  /** It stops in the middle of every order: how far it gets depends on the order's number. */
  readonly halts: boolean;
  /** A look at the world tells nothing, so that only evidence can settle a doubt. */
  readonly blind: boolean;
  /** Orders to start. */
  readonly start: number;
  /** An act answers only once this file exists. */
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

/** Says that whoever was sending is dead: what is not in the ledger now will never be, and absence is final. */
export const closedFor = (ledger: string): string => `${ledger}.closed`;

/** In which part of its work a halting worker leaves an order: all four must survive a kill. */
export type Place = "first step" | "before the act" | "after the act" | "last step";
const places: readonly Place[] = ["first step", "before the act", "after the act", "last step"];
export const placeOf = (order: number): Place => places[order % 4]!;

const never = (): Promise<void> => new Promise(() => {});

/** Orders are paid by an inline act that may happen once only and that can be looked for in the ledger. */
export function buildRunner(orders: Orders): Runner {
  const { ledger, halts, blind, answersAt } = orders;
  const stopsAt = (order: number, place: Place): Promise<void> =>
    halts && placeOf(order) === place ? never() : Promise.resolve();

  const pay = effect(
    "pay",
    async ({ order }: { order: number }, fx) => {
      await stopsAt(order, "before the act");
      const line: Line = { order, key: fx.key, token: String(fx.token), pid: process.pid };
      appendFileSync(ledger, `${JSON.stringify(line)}\n`); // one small O_APPEND write: whole or not at all
      await stopsAt(order, "after the act");
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
      timeout: "60s", // nobody is to time out by itself, however busy the machine
      settleDelay: 0,
    },
  );

  const checkout = workflow("checkout", async (tape, { order }: { order: number }) => {
    await tape.step("reserve", () => stopsAt(order, "first step"));
    // An act that surely did not happen is decided anew, under a new key.
    let paid = await tape.attempt(pay.with({ order }));
    while (paid.status !== "confirmed") paid = await tape.attempt(pay.with({ order }));
    await tape.step("book", () => stopsAt(order, "last step"));
    return paid.value;
  });
  return createRunner({ workflows: [checkout], effects: [pay] });
}
