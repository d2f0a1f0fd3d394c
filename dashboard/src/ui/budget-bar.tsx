import { formatAmount } from "../format.ts";
import { Meter } from "./meter.tsx";

export interface Amounts {
  readonly cap: number;
  readonly spent: number;
  readonly reserved: number;
}

/** Close to the cap the next reservation is refused. */
export const tight = 0.9;

export function shareOf({ cap, spent, reserved }: Amounts): number {
  return cap === 0 ? 1 : (spent + reserved) / cap;
}

/** What is spent and reserved of a cap, in words and as a bar. */
export function BudgetBar({ unit, of, ...amounts }: Amounts & { readonly unit: string; readonly of?: string }) {
  const { cap, spent, reserved } = amounts;
  const share = shareOf(amounts);
  return (
    <div className="budget">
      <span>
        {unit}: {formatAmount(spent)} spent{reserved > 0 ? `, ${formatAmount(reserved)} reserved` : ""}, of{" "}
        {formatAmount(cap)}
        {of !== undefined && <span className="muted small"> in {of}</span>}
      </span>
      <Meter share={share} tone={share > tight ? "bad" : "run"} label={`${unit} used`} />
    </div>
  );
}
