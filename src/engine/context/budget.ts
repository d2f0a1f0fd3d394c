import { isTapeError } from "../../model/errors.ts";
import type { RecordData } from "../../model/records.ts";
import type { BudgetContext } from "../../sdk/context.ts";
import { currentSite, runAt } from "../../sdk/current.ts";
import type { DriveHandle } from "../core/handle.ts";
import { OpenSpend } from "./open-spend.ts";
import type { Operations } from "./operations.ts";

/** Amounts are stored as whole millionths. Reservations are rounded up, charges to the nearest. */
const million = 1_000_000;

type Amounts = Readonly<Record<string, number>>;

/** Reserve, call, charge. The caps belong to the root run: children draw on the same rows. */
export function budgetOf(context: Operations, drive: DriveHandle): BudgetContext {
  const reserve = (amounts: Amounts): Promise<BudgetReservation> => {
    const whole = scaled(amounts, Math.ceil);
    return context.operation<BudgetReservation>({
      kinds: ["budget.reserved", "step.done"],
      name: "budget.reserved",
      result: ({ record, seq }) => ({ ...resultOf(record.data as RecordData<"budget.reserved">), seq }),
      begin: (handle) => {
        const data = { pos: handle.pos, rootRun: drive.root, amounts: whole };
        handle.end({ kind: "budget.reserved", data }, data);
      },
    });
  };
  const charge = (spent: Amounts, { pos: reservation, amounts: reserved }: BudgetReservation): Promise<void> =>
    context.operation<void>({
      kinds: ["budget.charged", "step.done"],
      name: "budget.charged",
      evenIfCancelled: true, // otherwise a cancelled child would keep budget that its siblings need
      result: ({ record }) => void resultOf(record.data as RecordData<"budget.charged">),
      begin: (handle) => {
        const whole = scaled(spent, Math.round);
        const data = { pos: handle.pos, reservation, rootRun: drive.root, spent: whole, reserved };
        const over = beyond(whole, reserved);
        handle.end({ kind: "budget.charged", data: { ...data, ...(over && { over }) } }, undefined);
      },
    });
  return {
    async spend(amounts, call) {
      const reserved = await reserve(amounts);
      let bought: Awaited<ReturnType<typeof call>>;
      try {
        const { pos, amounts: estimate } = reserved;
        const spend = new OpenSpend(drive, { pos, rootRun: drive.root, amounts: { ...estimate } }, reserved.seq);
        bought = await runAt({ ...currentSite(), context: drive.context, spend }, call);
      } catch (error) {
        await charge({}, reserved); // nothing was bought, so the reservation is released
        throw error;
      }
      try {
        await charge(bought.cost, reserved);
      } catch (error) {
        if (!isTapeError(error, "TAPE_TOO_LARGE")) throw error;
        // One unit too many: what was reserved is charged, so that the reservation is not left open.
        const units = Object.entries(bought.cost).filter(([unit]) => Object.hasOwn(reserved.amounts, unit));
        await charge(Object.fromEntries(units), reserved);
        throw error;
      }
      return bought.value;
    },
  };
}

/** `seq`: the number of its record, if an earlier term has made it. */
type BudgetReservation = Pick<RecordData<"budget.reserved">, "pos" | "amounts"> & { readonly seq?: number };

function resultOf<T>(data: T): T {
  const { error } = data as { error?: unknown };
  if (error !== undefined) throw error;
  return data;
}

/** What was spent beyond the reservation; undefined: nothing. */
function beyond(spent: Amounts, reserved: Amounts): Record<string, number> | undefined {
  const over = Object.entries(spent).flatMap(([unit, amount]) => {
    const excess = amount - (Object.hasOwn(reserved, unit) ? reserved[unit]! : 0);
    return excess > 0 ? [[unit, excess] as const] : [];
  });
  return over.length === 0 ? undefined : Object.fromEntries(over);
}

function scaled(amounts: Amounts, round: (value: number) => number): Record<string, number> {
  return Object.fromEntries(Object.entries(amounts).map(([unit, amount]) => [unit, round(amount * million)]));
}
