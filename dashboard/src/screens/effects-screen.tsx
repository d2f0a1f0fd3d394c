import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { call, type Effect } from "../api.ts";
import { brief, describeReason } from "../format.ts";
import { Badge } from "../ui/badge.tsx";
import { Empty } from "../ui/empty.tsx";
import { Json } from "../ui/json.tsx";
import { LoadMore } from "../ui/load-more.tsx";
import { Modal } from "../ui/modal.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { RunLink } from "../ui/run-link.tsx";
import { Screen } from "../ui/screen.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";
import { useNames } from "../ui/use-names.ts";

const statuses = {
  effect: ["PENDING", "DISPATCHED", "CONFIRMED", "FAILED", "UNKNOWN", "STUCK", "WITHDRAWN"],
  compensation: ["ARMED", "PENDING", "COMMITTED", "UNKNOWN", "COMPENSATED", "STUCK", "DISCHARGED"],
} as const;
const most = 200;

export function EffectsScreen({ of: role }: { readonly of: "effect" | "compensation" }) {
  const path = role === "effect" ? "/effects" : "/obligations";
  const { status } = useSearch({ from: path });
  const go = useNavigate({ from: path });
  const effects = useInfiniteQuery({
    queryKey: ["effects", role, status],
    queryFn: ({ pageParam }) => call("effects.list", { query: { role, status, after: pageParam, limit: most } }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
    select: ({ pages }) => ({ effects: pages.flatMap((page) => page.effects) }),
  });
  const nameOf = useNames((effects.data?.effects ?? []).map(({ run }) => run));
  return (
    <Screen
      title={role === "effect" ? "Effects" : "Obligations"}
      about={
        role === "effect"
          ? "What runs do to the world, and how it stands."
          : "What must be undone if a run fails or is cancelled, and how far that is."
      }
      actions={
        <label>
          Status
          <select
            value={status ?? ""}
            onChange={(event) => void go({ search: { status: event.target.value || undefined }, replace: true })}
          >
            <option value="">any</option>
            {statuses[role].map((one) => (
              <option key={one} value={one}>
                {one.toLowerCase()}
              </option>
            ))}
          </select>
        </label>
      }
    >
      <QueryView of={effects}>
        {({ effects: rows }) =>
          rows.length === 0 ? (
            <Empty title={role === "effect" ? "No such act" : "Nothing is owed"}>
              {role === "effect"
                ? "What workflows do with tape.effect(…) will be here."
                : "An effect with compensate leaves one when it is confirmed."}
            </Empty>
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

export function EffectTable({
  effects,
  nameOf,
}: {
  readonly effects: readonly Effect[];
  readonly nameOf?: (run: number) => string | undefined;
}) {
  const [chosen, setChosen] = useState<Effect>();
  const runOf: readonly Column<Effect>[] =
    nameOf === undefined
      ? []
      : [{ name: "Run", cell: ({ run }) => (nameOf(run) === undefined ? "…" : <RunLink id={nameOf(run)!} />) }];
  return (
    <>
      <Table
        rows={effects}
        keyOf={({ run, pos, sub }) => `${run} ${pos} ${sub}`}
        columns={[
          {
            name: "Status",
            cell: ({ status, reason }) => (
              <>
                <Badge status={status} />
                <span className="muted small block">{describeReason(reason)}</span>
              </>
            ),
          },
          {
            name: "What",
            cell: (effect) => (
              <>
                <button type="button" className="link" onClick={() => setChosen(effect)} data-row>
                  {effect.name ?? "undoing"}
                </button>
                <span className="muted small block">
                  at {effect.pos}
                  {effect.sub > 0 ? `.${effect.sub}` : ""}
                  {effect.businessKey === null ? "" : ` · ${effect.businessKey}`}
                </span>
              </>
            ),
          },
          ...runOf,
          { name: "Arguments", look: "mono small", cell: ({ args }) => brief(args, 80) },
          { name: "Attempts", cell: ({ attempt }) => attempt },
          { name: "Changed", look: "muted when", cell: ({ changedAt }) => <TimeAgo at={changedAt} /> },
        ]}
      />
      {chosen !== undefined && (
        <Modal side title={chosen.name ?? "undoing"} onClose={() => setChosen(undefined)}>
          <Json value={chosen} label="The row" />
        </Modal>
      )}
    </>
  );
}
