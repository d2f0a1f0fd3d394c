import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { effectPages } from "../queries.ts";
import { EffectTable } from "../ui/effect-table.tsx";
import { Empty } from "../ui/empty.tsx";
import { LoadMore } from "../ui/load-more.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Screen } from "../ui/screen.tsx";
import { useNames } from "../ui/use-names.ts";

const roles = {
  effect: {
    path: "/effects",
    title: "Effects",
    about: "Calls to external systems and their outcomes, across all runs. Newest first.",
    statuses: ["PENDING", "DISPATCHED", "CONFIRMED", "FAILED", "UNKNOWN", "STUCK", "WITHDRAWN"],
    empty: (
      <Empty title="No effects match">
        Effects that workflows call with <code>tape.effect(…)</code> appear here.
      </Empty>
    ),
  },
  compensation: {
    path: "/obligations",
    title: "Obligations",
    about: "Compensations that runs owe if they fail or are cancelled, and how far they are. Newest first.",
    statuses: ["ARMED", "PENDING", "COMMITTED", "UNKNOWN", "COMPENSATED", "STUCK", "DISCHARGED"],
    empty: (
      <Empty title="No obligations">
        A confirmed effect with <code>compensate</code> creates one.
      </Empty>
    ),
  },
} as const;

/** The list of effects, or of the compensations that they owe. */
export function EffectsScreen({ of: role }: { readonly of: keyof typeof roles }) {
  const { path, title, about, statuses, empty } = roles[role];
  const { status } = useSearch({ from: path });
  const navigate = useNavigate({ from: path });
  const effects = useInfiniteQuery(effectPages(role, status));
  const nameOf = useNames((effects.data?.effects ?? []).map(({ run }) => run));
  return (
    <Screen
      title={title}
      about={about}
      actions={
        <label>
          Status
          <select
            value={status ?? ""}
            onChange={(event) => void navigate({ search: { status: event.target.value || undefined }, replace: true })}
          >
            <option value="">any</option>
            {statuses.map((name) => (
              <option key={name} value={name}>
                {name.toLowerCase()}
              </option>
            ))}
          </select>
        </label>
      }
    >
      <QueryView of={effects}>
        {({ effects: rows }) =>
          rows.length === 0 ? (
            empty
          ) : (
            <>
              <EffectTable effects={rows} nameOf={nameOf} />
              <LoadMore of={effects} />
            </>
          )
        }
      </QueryView>
    </Screen>
  );
}
