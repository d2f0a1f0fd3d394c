import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { call, type Effect } from "../api.ts";
import { brief, reasonOf } from "../format.ts";
import { Badge } from "../ui/badge.tsx";
import { useNames } from "../ui/names.ts";
import { Ago, Answer, Empty, Json, Modal, RunLink, Screen } from "../ui/parts.tsx";

const statuses = {
  act: ["PENDING", "DISPATCHED", "CONFIRMED", "FAILED", "UNKNOWN", "STUCK", "WITHDRAWN"],
  inverse: ["ARMED", "PENDING", "COMMITTED", "UNKNOWN", "COMPENSATED", "STUCK", "DISCHARGED"],
} as const;
const most = 200;

export function Effects({ of: role }: { readonly of: "act" | "inverse" }) {
  const path = role === "act" ? "/effects" : "/obligations";
  const { status } = useSearch({ from: path });
  const go = useNavigate({ from: path });
  const effects = useQuery({
    queryKey: ["effects", role, status],
    queryFn: () => call("effects.list", { query: { role, status, limit: most } }),
  });
  const nameOf = useNames((effects.data?.effects ?? []).map(({ run }) => run));
  return (
    <Screen
      title={role === "act" ? "Effects" : "Obligations"}
      about={
        role === "act"
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
      <Answer of={effects}>
        {({ effects: rows }) =>
          rows.length === 0 ? (
            <Empty title={role === "act" ? "No such act" : "Nothing is owed"}>
              {role === "act"
                ? "What workflows do with tape.effect(…) will be here."
                : "An effect with compensate leaves one when it is confirmed."}
            </Empty>
          ) : (
            <EffectTable effects={rows} nameOf={nameOf} />
          )
        }
      </Answer>
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
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Status</th>
            <th scope="col">What</th>
            {nameOf !== undefined && <th scope="col">Run</th>}
            <th scope="col">Arguments</th>
            <th scope="col">Attempts</th>
            <th scope="col">Changed</th>
          </tr>
        </thead>
        <tbody>
          {effects.map((effect) => {
            const { run, pos, sub, name, status, args, attempt, reason, changedAt, businessKey } = effect;
            const id = nameOf?.(run);
            return (
              <tr key={`${run} ${pos} ${sub}`}>
                <td>
                  <Badge status={status} />
                  <span className="muted small block">{reasonOf(reason)}</span>
                </td>
                <td>
                  <button type="button" className="link" onClick={() => setChosen(effect)} data-row>
                    {name ?? "undoing"}
                  </button>
                  <span className="muted small block">
                    at {pos}
                    {sub > 0 ? `.${sub}` : ""}
                    {businessKey === null ? "" : ` · ${businessKey}`}
                  </span>
                </td>
                {nameOf !== undefined && <td>{id === undefined ? "…" : <RunLink id={id} />}</td>}
                <td className="mono small">{brief(args, 80)}</td>
                <td>{attempt}</td>
                <td className="muted">
                  <Ago at={changedAt} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {chosen !== undefined && (
        <Modal side title={chosen.name ?? "undoing"} onClose={() => setChosen(undefined)}>
          <Json value={chosen} label="The row" />
        </Modal>
      )}
    </div>
  );
}
