import { Link } from "@tanstack/react-router";
import { labelText, withLabel } from "../run-search.ts";

/** A label of a run. It leads to the runs that have it too; on the list of runs it narrows the filter. */
export function LabelChip({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <Link
      to="/runs"
      search={(before: { readonly labels?: string | undefined }) => ({
        ...before,
        tab: undefined,
        labels: withLabel(before.labels, labelText(name, value)),
      })}
      className="label"
    >
      {name}:{value}
    </Link>
  );
}
