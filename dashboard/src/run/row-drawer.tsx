import type { ReactNode } from "react";
import type { JournalRecord } from "../api.ts";
import { brief, describeReason, formatTime, unwrap } from "../format.ts";
import { Facts } from "../ui/facts.tsx";
import { Json } from "../ui/json.tsx";
import { Modal } from "../ui/modal.tsx";
import { RunLink } from "../ui/run-link.tsx";
import { BlobLinks } from "./blob-links.tsx";
import type { Replay } from "./replays.ts";
import type { Row } from "./timeline-rows.ts";

/** Record fields that fit on a line, and their labels, most useful first. */
const shortFields: readonly (readonly [field: string, label: string])[] = [
  ["model", "Model"],
  ["policy", "Policy"],
  ["rationale", "Rationale"],
  ["usage", "Usage"],
  ["key", "Idempotency key"],
  ["businessKey", "Business key"],
  ["semantics", "Semantics"],
  ["dispatch", "Dispatch"],
  ["attempt", "Attempts"],
  ["binds", "Bound to"],
];
const longFields: readonly (readonly [field: string, label: string])[] = [
  ["input", "Input"],
  ["args", "Arguments"],
  ["payload", "Payload"],
  ["request", "Model request"],
  ["response", "Model response"],
  ["value", "Result"],
  ["outcome", "Outcome"],
  ["error", "Error"],
];

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = ({ data }: JournalRecord): Fields => (unwrap(data) ?? {}) as Fields;

function latest(records: readonly JournalRecord[], field: string): unknown {
  return records.map(fieldsOf).findLast((fields) => fields[field] !== undefined)?.[field];
}

/** Everything about one row of the timeline: a summary, then its raw records. */
export function RowDrawer({
  run,
  row,
  replays,
  onClose,
}: {
  readonly run: string;
  readonly row: Row;
  readonly replays: readonly Replay[];
  readonly onClose: () => void;
}) {
  const { records } = row;
  const facts: (readonly [string, ReactNode])[] = shortFields.flatMap(([field, label]) => {
    const value = latest(records, field);
    return value === undefined ? [] : [[label, brief(value).replaceAll("non_idempotent", "non-idempotent")] as const];
  });
  const reason = latest(records, "reason");
  const child = records.find(({ kind }) => kind === "child.started");
  return (
    <Modal side title={`${row.kind} ${row.name}`} onClose={onClose}>
      <Facts
        of={[
          ...(row.status === undefined ? [] : [["Status", row.status.toLowerCase()] as const]),
          ...(typeof reason === "string" ? [["Reason", describeReason(reason)] as const] : []),
          ...facts,
          ...(child === undefined ? [] : [["Run", <RunLink key="child" id={String(fieldsOf(child).id)} />] as const]),
          ["First record", formatTime(records[0]!.at)],
          ...(records.length > 1 ? [["Last record", formatTime(records.at(-1)!.at)] as const] : []),
          ...(replays.length === 0
            ? []
            : [["Replayed by", replays.map(({ label, token }) => `${label} (token ${token})`).join(", ")] as const]),
        ]}
      />
      {longFields.map(([field, label]) => {
        const value = latest(records, field);
        if (value === undefined) return null;
        return (
          <section key={field} className="part" aria-label={label}>
            <h3>{label}</h3>
            <Json value={value} label={label} />
          </section>
        );
      })}
      <BlobLinks run={run} records={records} />
      <details>
        <summary>{records.length === 1 ? "Raw record" : `${records.length} raw records`}</summary>
        <RawRecords records={records} />
      </details>
    </Modal>
  );
}

function RawRecords({ records }: { readonly records: readonly JournalRecord[] }) {
  return (
    <ol className="evidence">
      {records.map((record) => (
        <li key={`${record.journal} ${record.seq}`}>
          <strong>{record.kind}</strong>
          <Facts
            of={[
              ["Journal", `${record.journal}, seq ${record.seq}`],
              ["Token", record.token],
              ["Time", formatTime(record.at)],
            ]}
          />
          <Json value={record.data} label={`${record.kind}, seq ${record.seq}`} />
        </li>
      ))}
    </ol>
  );
}
