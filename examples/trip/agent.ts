// In your own project: from "durable-tape".
import {
  createRunner,
  DefiniteFailure,
  type Duration,
  effect,
  gate,
  isTapeError,
  type Runner,
  workflow,
} from "../../src/exports/index.ts";
import { addOnce, type Ledger, memoryLedger } from "../ledger.ts";

export interface Trip {
  readonly id: string;
  readonly car: string;
  /** The trip is booked as a whole within this time, or not at all. */
  readonly within: Duration;
}

/** Booking services. They deduplicate by key. */
export interface World {
  book(key: string, what: string, trip: string): Promise<{ reference: string }>;
  cancel(key: string, what: string, trip: string): Promise<void>;
  mail(key: string, trip: string, text: string): Promise<void>;
}

/** The customer confirms the total. */
export const confirmation = gate<{ agreed: boolean }>("confirmation");

/** A saga inside a time-out: flight, hotel and car, or none of them. The mail is sent either way. */
export function tripOn({ book: request, cancel, mail: send }: World) {
  const book = effect("book", ({ what, trip }: { what: string; trip: string }, fx) => request(fx.key, what, trip), {
    semantics: "idempotent",
    compensate: { run: ({ what, trip }, _done, fx) => cancel(fx.key, what, trip), semantics: "idempotent" },
  });

  const mail = effect("mail", ({ trip, text }: { trip: string; text: string }, fx) => send(fx.key, trip, text), {
    semantics: "idempotent",
  });

  const trip = workflow("trip", async (tape, input: Trip) => {
    const whole = tape.timeout(input.within, () =>
      tape.saga(async () => {
        await book({ what: "flight", trip: input.id });
        await book({ what: "hotel", trip: input.id });
        await book({ what: input.car, trip: input.id });
        const answer = await tape.gate(confirmation);
        if (answer.status === "timeout" || !answer.value.agreed) throw new DefiniteFailure("the customer declined");
        return "booked";
      }),
    );
    // Whatever has failed, nothing is booked any more when this line is reached.
    const text = await whole.catch((error: unknown) =>
      isTapeError(error, "TAPE_TIMEOUT") ? "not confirmed in time" : "not available",
    );
    await mail({ trip: input.id, text });
    return text;
  });

  return { trip, runner: createRunner({ workflows: [trip], effects: [book, mail] }) };
}

export function worldOn(ledger: Ledger, options: { readonly rejected?: readonly string[] } = {}): World {
  return {
    async book(key, what, trip) {
      if (options.rejected?.includes(what) === true) throw new DefiniteFailure(`no ${what} is left`);
      addOnce(ledger, { kind: what, subject: trip, key });
      return { reference: `${what}-${trip}` };
    },
    cancel: async (key, what, trip) => addOnce(ledger, { kind: `cancel ${what}`, subject: trip, key }),
    mail: async (key, trip, text) => addOnce(ledger, { kind: text, subject: trip, key }),
  };
}

export const buildRunner = (world: World = worldOn(memoryLedger())): Runner => tripOn(world).runner;
