// In your own project: from "durable-tape".
import { createRunner, DefiniteFailure, effect, outcome, type Runner, workflow } from "../../src/exports/index.ts";
import { addOnce, findEntry, type Ledger, memoryLedger } from "../ledger.ts";

export interface Order {
  readonly id: string;
  readonly item: string;
  readonly price: number;
}

/** Three services. Stock and carrier deduplicate by key; the card processor does not, but can look up a charge. */
export interface World {
  readonly stock: { reserve(key: string, order: Order): Promise<void>; free(key: string, order: Order): Promise<void> };
  readonly cards: {
    charge(order: Order): Promise<{ charge: string }>;
    find(order: string): Promise<{ charge: string } | undefined>;
    refund(key: string, order: Order, charge: string): Promise<void>;
  };
  readonly carrier: { ship(key: string, order: Order): Promise<{ parcel: string }> };
}

/** A saga: reserve, charge, ship. If one fails, the earlier ones are compensated, newest first. */
export function orderOn({ stock, cards, carrier }: World) {
  const reserve = effect("stock.reserve", (order: Order, fx) => stock.reserve(fx.key, order), {
    semantics: "idempotent",
    compensate: { run: (order, _done, fx) => stock.free(fx.key, order), semantics: "idempotent" },
  });

  const charge = effect("cards.charge", (order: Order) => cards.charge(order), {
    businessKey: (order) => order.id,
    observe: async (order) => {
      const found = await cards.find(order.id);
      return found === undefined ? outcome.absent() : outcome.confirmed(found);
    },
    compensate: {
      run: (order, charged, fx) => cards.refund(fx.key, order, charged.charge),
      semantics: "idempotent",
    },
  });

  const ship = effect("carrier.ship", (order: Order, fx) => carrier.ship(fx.key, order), { semantics: "idempotent" });

  const order = workflow("order", async (tape, input: Order) => {
    await reserve(input);
    // A failed charge did not happen, so it may be tried again: a new decision, under a new key.
    let charged = await tape.attempt(charge.with(input));
    if (charged.status === "failed" && charged.reason !== "definite") charged = await tape.attempt(charge.with(input));
    if (charged.status === "failed") throw new DefiniteFailure("the card was not charged", { cause: charged.error });
    const { parcel } = await ship(input); // throws EffectFailed: the run fails, and the two above are compensated
    return { order: input.id, parcel };
  });

  return { order, runner: createRunner({ workflows: [order], effects: [reserve, charge, ship] }) };
}

export function worldOn(ledger: Ledger, options: { readonly rejected?: readonly string[] } = {}): World {
  return {
    stock: {
      reserve: async (key, { id }) => addOnce(ledger, { kind: "reserve", subject: id, key }),
      free: async (key, { id }) => addOnce(ledger, { kind: "free", subject: id, key }),
    },
    cards: {
      async charge({ id, price }) {
        ledger.add({ kind: "charge", subject: id, detail: price });
        return { charge: `C-${id}` };
      },
      find: async (id) => (findEntry(ledger, "charge", id) === undefined ? undefined : { charge: `C-${id}` }),
      refund: async (key, { id }) => addOnce(ledger, { kind: "refund", subject: id, key }),
    },
    carrier: {
      async ship(key, { id, item }) {
        if (options.rejected?.includes(item) === true) throw new DefiniteFailure(`${item} is too large for a parcel`);
        addOnce(ledger, { kind: "ship", subject: id, key });
        return { parcel: `P-${id}` };
      },
    },
  };
}

export const buildRunner = (world: World = worldOn(memoryLedger())): Runner => orderOn(world).runner;
