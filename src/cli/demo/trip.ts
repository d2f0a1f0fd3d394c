import { effect } from "../../sdk/effect.ts";
import { DefiniteFailure, outcome } from "../../sdk/outcomes.ts";
import { createRunner, workflow } from "../../sdk/workflow.ts";
import { findEntry, type Ledger } from "./treasury/ledger.ts";

/** Called after each event of the demo's world, once it is in the ledger. */
export type OnTripEvent = (event: string) => void | Promise<void>;

/**
 * An agent that books a trip: a flight through the outbox, a sleep, a hotel, and a card that is declined. Neither the
 * airline nor the hotel deduplicates calls.
 */
export function tripOn(ledger: Ledger, onEvent: OnTripEvent, sleepMs: number) {
  const call = async (kind: string, subject: string): Promise<string> => {
    ledger.add({ kind, subject });
    await onEvent(kind);
    return `${kind} for ${subject}`;
  };
  const observe = async (kind: string, subject: string) => {
    const found = findEntry(ledger, kind, subject) !== undefined;
    await onEvent(`observe ${kind} (${found ? "found" : "not found"})`);
    return found ? outcome.confirmed(`${kind} for ${subject}`) : outcome.absent();
  };
  const booking = (thing: string) => ({
    businessKey: (trip: string) => trip,
    observe: (trip: string) => observe(`book ${thing}`, trip),
    compensate: {
      run: (trip: string) => call(`cancel ${thing}`, trip),
      observe: ({ args: trip }: { readonly args: string }) => observe(`cancel ${thing}`, trip),
    },
  });
  const flight = effect("airline.book", (trip: string) => call("book flight", trip), {
    ...booking("flight"),
    dispatch: "outbox",
  });
  const hotel = effect("hotel.book", (trip: string) => call("book hotel", trip), booking("hotel"));
  const trip = workflow("trip", async (tape, input: { trip: string }) => {
    await flight(input.trip);
    await tape.sleep(sleepMs);
    await hotel(input.trip);
    await tape.step("charge the card", () => {
      throw new DefiniteFailure("the card is declined");
    });
  });
  return { trip, runner: createRunner({ workflows: [trip], effects: [flight, hotel] }) };
}
