import { effect } from "../../sdk/effect.ts";
import { DefiniteFailure, outcome } from "../../sdk/outcomes.ts";
import { createRunner, workflow } from "../../sdk/workflow.ts";
import { findAct, type Ledger } from "./treasury/ledger.ts";

/** What the world of the demo tells whoever watches, after it is in the ledger. */
export type TripEvent = (act: string) => void | Promise<void>;

/**
 * An agent that books a trip: a flight by the outbox, a rest of a while, a hotel, and a card that is refused. Neither the
 * airline nor the hotel notices when it is asked twice.
 */
export function tripOn(ledger: Ledger, told: TripEvent, restMs: number) {
  const act = async (what: string, about: string): Promise<string> => {
    ledger.add({ act: what, about });
    await told(what);
    return `${what} for ${about}`;
  };
  const seen = async (what: string, about: string) => {
    const found = findAct(ledger, what, about) !== undefined;
    await told(`look for ${what}: ${found ? "found" : "not there"}`);
    return found ? outcome.confirmed(`${what} for ${about}`) : outcome.absent();
  };
  const booking = (thing: string) => ({
    businessKey: (trip: string) => trip,
    observe: (trip: string) => seen(`book ${thing}`, trip),
    compensate: {
      run: (trip: string) => act(`cancel ${thing}`, trip),
      observe: ({ args: trip }: { readonly args: string }) => seen(`cancel ${thing}`, trip),
    },
  });
  const flight = effect("airline.book", (trip: string) => act("book flight", trip), {
    ...booking("flight"),
    dispatch: "outbox",
  });
  const hotel = effect("hotel.book", (trip: string) => act("book hotel", trip), booking("hotel"));
  const trip = workflow("trip", async (tape, input: { trip: string }) => {
    await flight(input.trip);
    await tape.sleep(restMs);
    await hotel(input.trip);
    await tape.step("charge the card", () => {
      throw new DefiniteFailure("the card is refused");
    });
  });
  return { trip, runner: createRunner({ workflows: [trip], effects: [flight, hotel] }) };
}
