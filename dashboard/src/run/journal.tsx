import { useQueries } from "@tanstack/react-query";
import { useState } from "react";
import type { JournalRecord, Run } from "../api.ts";
import { brief, formatTime } from "../format.ts";
import { runRecords, windowRows } from "../queries.ts";
import { Facts } from "../ui/facts.tsx";
import { Json } from "../ui/json.tsx";
import { Modal } from "../ui/modal.tsx";
import { useWindow, VirtualTable } from "../ui/virtual-table.tsx";

const rowHeight = 36;

/** Every record, read in windows: seq is dense from 1, so a row's index is its seq minus one. */
export function Journal({ run, head }: { readonly run: Run; readonly head: number }) {
  const [chosen, setChosen] = useState<JournalRecord>();
  const window = useWindow(head, rowHeight);
  const first = Math.floor(window.first / windowRows);
  const last = Math.floor(window.last / windowRows);
  const windows = Array.from({ length: last - first + 1 }, (_none, k) => first + k);
  const found = useQueries({
    queries: windows.map((index) =>
      runRecords(run.id, index * windowRows + 1, Math.min(head, (index + 1) * windowRows)),
    ),
  });
  const recordAt = (index: number): JournalRecord | undefined =>
    found[Math.floor(index / windowRows) - first]?.data?.records[index % windowRows];
  return (
    <>
      <VirtualTable
        label="Journal"
        kind="journal"
        columns={["Seq", "Time", "Token", "Kind", "Data"]}
        window={window}
        count={head}
      >
        {(index) => {
          const record = recordAt(index);
          return (
            <>
              <td className="mono">{index + 1}</td>
              <td className="muted">{record === undefined ? "…" : formatTime(record.at).slice(11)}</td>
              <td className="mono muted">{record?.token}</td>
              <td>
                {record !== undefined && (
                  <button type="button" className="link" onClick={() => setChosen(record)} data-row>
                    {record.kind}
                  </button>
                )}
              </td>
              <td className="mono small muted">{brief(record?.data, 160)}</td>
            </>
          );
        }}
      </VirtualTable>
      {chosen !== undefined && (
        <Modal side title={chosen.kind} onClose={() => setChosen(undefined)}>
          <Facts
            of={[
              ["Seq", String(chosen.seq)],
              ["Token", chosen.token],
              ["Time", formatTime(chosen.at)],
            ]}
          />
          <Json value={chosen.data} label="Raw record" />
        </Modal>
      )}
    </>
  );
}
