import { useState } from "react";
import type { Effect } from "../api.ts";
import { brief, describeReason } from "../format.ts";
import { Badge } from "./badge.tsx";
import { Json } from "./json.tsx";
import { Modal } from "./modal.tsx";
import { RunLink } from "./run-link.tsx";
import { type Column, Table } from "./table.tsx";
import { TimeAgo } from "./time-ago.tsx";

/** Effects and obligations of one run; with `nameOf` those of many runs, of one role, each row with its run. */
export function EffectTable({
  effects,
  nameOf,
}: {
  readonly effects: readonly Effect[];
  readonly nameOf?: (run: number) => string | undefined;
}) {
  const [chosen, setChosen] = useState<Effect>();
  const runColumn: readonly Column<Effect>[] =
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
            name: "Effect",
            cell: (effect) => (
              <>
                <button type="button" className="link" onClick={() => setChosen(effect)} data-row>
                  {titleOf(effect)}
                </button>
                <span className="muted small block">
                  {nameOf === undefined && effect.role === "compensation" ? "compensation · " : ""}position {effect.pos}
                </span>
                <span className="muted small block">{effect.businessKey}</span>
              </>
            ),
          },
          ...runColumn,
          { name: "Arguments", className: "mono small", cell: ({ args }) => brief(args, 80) },
          { name: "Attempts", cell: ({ attempt }) => attempt },
          { name: "Updated", className: "muted when", cell: ({ changedAt }) => <TimeAgo at={changedAt} /> },
        ]}
      />
      {chosen !== undefined && (
        <Modal side title={titleOf(chosen)} onClose={() => setChosen(undefined)}>
          <Json value={chosen} label="Raw row" />
        </Modal>
      )}
    </>
  );
}

const titleOf = ({ name }: Effect): string => name ?? "effect";
