import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../api.ts";
import { brief, formatTime } from "../format.ts";
import { Empty } from "../ui/empty.tsx";
import { Json } from "../ui/json.tsx";
import { Modal } from "../ui/modal.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Screen } from "../ui/screen.tsx";
import { QueryTable } from "../ui/table.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";

const versions = 20;

export function ValuesScreen() {
  const [prefix, setPrefix] = useState("");
  const [chosen, setChosen] = useState<{ readonly name: string; readonly version: number }>();
  const values = useQuery({
    queryKey: ["values", prefix],
    queryFn: () => call("values.list", { query: { prefix, limit: 200 } }),
    placeholderData: (before) => before,
  });
  return (
    <Screen
      title="Values"
      about="Shared values with versions. A write counts only if nobody wrote in between."
      actions={
        <label>
          Begins with
          <input value={prefix} placeholder="any" onChange={(event) => setPrefix(event.target.value)} />
        </label>
      }
    >
      <QueryTable
        of={values}
        rows={({ values: rows }) => rows}
        keyOf={({ key }) => key}
        empty={
          <Empty title="No value">
            RunsScreen write them with <code>tape.values.put(…)</code>, programs over HTTP with{" "}
            <code>PUT /v1/values/KEY</code>.
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
            look: "mono small",
            cell: ({ deleted, value }) => (deleted ? "deleted" : brief(value, 120)),
          },
          { name: "Written", look: "muted when", cell: ({ at }) => <TimeAgo at={at} /> },
        ]}
      />
      {chosen !== undefined && <History {...chosen} onClose={() => setChosen(undefined)} />}
    </Screen>
  );
}

function History({
  name,
  version,
  onClose,
}: {
  readonly name: string;
  readonly version: number;
  readonly onClose: () => void;
}) {
  const history = useQuery({
    queryKey: ["value", name, version],
    queryFn: () =>
      call("values.history", {
        params: { key: name },
        query: { after: Math.max(0, version - versions), limit: versions },
      }),
  });
  return (
    <Modal side title={name} onClose={onClose}>
      <QueryView of={history}>
        {({ values }) => (
          <ol className="evidence">
            {values.toReversed().map((one) => (
              <li key={one.version}>
                <strong>version {one.version}</strong> <span className="muted small">{formatTime(one.at)}</span>
                {one.deleted ? <p>deleted</p> : <Json value={one.value} label={`version ${one.version}`} />}
              </li>
            ))}
          </ol>
        )}
      </QueryView>
    </Modal>
  );
}
