import type { ReactNode } from "react";
import type { Entry } from "../api.ts";
import { brief, describeReason, formatTime, unwrap } from "../format.ts";
import { Facts } from "../ui/facts.tsx";
import { Json } from "../ui/json.tsx";
import { Modal } from "../ui/modal.tsx";
import { RunLink } from "../ui/run-link.tsx";
import type { Replay } from "./replays.ts";
import type { Row } from "./timeline-rows.ts";

/** What a field of a record is called, in the order in which a person asks. */
const short: readonly (readonly [field: string, name: string])[] = [
  ["model", "Model"],
  ["policy", "Policy"],
  ["rationale", "Because"],
  ["usage", "Used"],
  ["key", "Idempotency key"],
  ["businessKey", "Business key"],
  ["semantics", "Semantics"],
  ["dispatch", "Sent by"],
  ["attempt", "Attempts"],
  ["binds", "Binds the act"],
];
const long: readonly (readonly [field: string, name: string])[] = [
  ["input", "Input"],
  ["args", "Arguments"],
  ["payload", "What it shows"],
  ["request", "What the model was asked"],
  ["response", "What the model answered"],
  ["value", "Result"],
  ["outcome", "Outcome"],
  ["error", "Error"],
];

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = ({ data }: Entry): Fields => (unwrap(data) ?? {}) as Fields;

/** The latest record that says it. */
function said(records: readonly Entry[], field: string): unknown {
  return records.map(fieldsOf).findLast((fields) => fields[field] !== undefined)?.[field];
}

/** Everything about one row of the timeline: first what it is, then the records as they are. */
export function RowDrawer({
  row,
  replays,
  onClose,
}: {
  readonly row: Row;
  readonly replays: readonly Replay[];
  readonly onClose: () => void;
}) {
  const { records } = row;
  const facts: (readonly [string, ReactNode])[] = short.flatMap(([field, name]) => {
    const value = said(records, field);
    return value === undefined ? [] : [[name, brief(value).replaceAll("non_idempotent", "non-idempotent")] as const];
  });
  const reason = said(records, "reason");
  const child = records.find(({ kind }) => kind === "child.started");
  return (
    <Modal side title={`${row.what} ${row.name}`} onClose={onClose}>
      <Facts
        of={[
          ...(row.status === undefined ? [] : [["Status", row.status.toLowerCase()] as const]),
          ...(typeof reason === "string" ? [["Why", describeReason(reason)] as const] : []),
          ...facts,
          ...(child === undefined ? [] : [["Run", <RunLink key="child" id={String(fieldsOf(child).id)} />] as const]),
          ["First record", formatTime(records[0]!.at)],
          ...(records.length > 1 ? [["Last record", formatTime(records.at(-1)!.at)] as const] : []),
          ...(replays.length === 0
            ? []
            : [["Replayed", replays.map(({ label, token }) => `${label} at token ${token}`).join(", ")] as const]),
        ]}
      />
      {long.map(([field, name]) => {
        const value = said(records, field);
        if (value === undefined) return null;
        return (
          <section key={field} className="part" aria-label={name}>
            <h3>{name}</h3>
            <Json value={value} label={name} />
          </section>
        );
      })}
      <details>
        <summary>{records.length === 1 ? "The record as it is" : `The ${records.length} records as they are`}</summary>
        <Records records={records} />
      </details>
    </Modal>
  );
}

function Records({ records }: { readonly records: readonly Entry[] }) {
  return (
    <ol className="evidence">
      {records.map((record) => (
        <li key={`${record.journal} ${record.seq}`}>
          <strong>{record.kind}</strong>
          <Facts
            of={[
              ["Journal", `${record.journal}, record ${record.seq}`],
              ["Token", record.token],
              ["At", formatTime(record.at)],
            ]}
          />
          <Json value={record.data} label={`${record.kind}, record ${record.seq}`} />
        </li>
      ))}
    </ol>
  );
}
