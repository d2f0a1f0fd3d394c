import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { brief, formatTime } from "../format.ts";
import * as queries from "../queries.ts";
import { Empty } from "../ui/empty.tsx";
import { Json } from "../ui/json.tsx";
import { Modal } from "../ui/modal.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Screen } from "../ui/screen.tsx";
import { QueryTable } from "../ui/table.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";

export function ValuesScreen() {
  const [prefix, setPrefix] = useState("");
  const [chosen, setChosen] = useState<{ readonly name: string; readonly version: number }>();
  return (
    <Screen
      title="Values"
      about="Shared, versioned values. A conditional write succeeds only if the version has not changed."
      actions={
        <label>
          Key prefix
          <input value={prefix} placeholder="any" onChange={(event) => setPrefix(event.target.value)} />
        </label>
      }
    >
      <QueryTable
        of={useQuery(queries.values(prefix))}
        rows={({ values: rows }) => rows}
        keyOf={({ key }) => key}
        empty={
          <Empty title={prefix === "" ? "No values yet" : "No values match"}>
            Workflows write them with <code>tape.values.put(…)</code>, other programs with{" "}
            <code>updateValue(store, …)</code> or <code>PUT /v1/values/KEY</code>.
          </Empty>
        }
        columns={[
          {
            name: "Key",
            cell: ({ key, version }) => (
              <button type="button" className="link mono" onClick={() => setChosen({ name: key, version })} data-row>
                {key}
              </button>
            ),
          },
          { name: "Version", cell: ({ version }) => version },
          {
            name: "Value",
            className: "mono small",
            cell: ({ deleted, value }) => (deleted ? "deleted" : brief(value, 120)),
          },
          { name: "Written", className: "muted when", cell: ({ at }) => <TimeAgo at={at} /> },
        ]}
      />
      {chosen !== undefined && <Versions {...chosen} onClose={() => setChosen(undefined)} />}
    </Screen>
  );
}

function Versions({
  name,
  version,
  onClose,
}: {
  readonly name: string;
  readonly version: number;
  readonly onClose: () => void;
}) {
  return (
    <Modal side title={name} onClose={onClose}>
      <QueryView of={useQuery(queries.valueVersions(name, version))}>
        {({ values }) => (
          <ol className="evidence">
            {values.toReversed().map((entry) => (
              <li key={entry.version}>
                <strong>Version {entry.version}</strong> <span className="muted small">{formatTime(entry.at)}</span>
                {entry.deleted ? <p>Deleted</p> : <Json value={entry.value} label={`Version ${entry.version}`} />}
              </li>
            ))}
          </ol>
        )}
      </QueryView>
    </Modal>
  );
}
