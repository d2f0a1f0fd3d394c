import { formatAmount, plural } from "../format.ts";
import { Meter } from "./meter.tsx";

export interface Amounts {
  /** null: counted without a cap. */
  readonly cap: number | null;
  readonly spent: number;
  readonly reserved: number;
}

/** From this share on the next reservation may exceed the cap and be rejected. */
export const tightShare = 0.9;

export function shareOf({ cap, spent, reserved }: Amounts): number {
  if (cap === null) return 0;
  return cap === 0 ? 1 : (spent + reserved) / cap;
}

/** "usd: 31.1 of 75 spent, 2 reserved (3 runs)", and a bar; "calls: 12 spent, no cap" without one. */
export function BudgetBar({ unit, runs, ...amounts }: Amounts & { readonly unit: string; readonly runs?: number }) {
  const { cap, spent, reserved } = amounts;
  const share = shareOf(amounts);
  return (
    <div className="budget">
      <span>
        {unit}: {formatAmount(spent)}
        {cap === null ? " spent, no cap" : ` of ${formatAmount(cap)} spent`}
        {reserved > 0 ? `, ${formatAmount(reserved)} reserved` : ""}
        {runs !== undefined && <span className="muted small"> ({plural(runs, "run")})</span>}
      </span>
      {cap !== null && <Meter share={share} tone={share > tightShare ? "bad" : "run"} label={`${unit} used`} />}
    </div>
  );
}
