import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { cleanLabels, labelPairs, type RunSearch, withoutLabel } from "../run-search.ts";

const statuses = [
  ["", "any"],
  ["RUNNING,RUNNABLE,ENDING,COMPENSATING", "running"],
  ["QUEUED", "queued"],
  ["WAITING", "waiting"],
  ["STUCK", "stuck"],
  ["COMPLETED", "completed"],
  ["FAILED", "failed"],
  ["CANCELLED", "cancelled"],
  ["COMPENSATED", "compensated"],
] as const;

const spans = [
  ["", "any time"],
  ["1h", "last hour"],
  ["24h", "last 24 hours"],
  ["7d", "last 7 days"],
] as const;
const isSpan = (since: string | undefined): boolean => spans.some(([value]) => value === (since ?? ""));

/** The filters of the list of runs. Each stands in the address. */
export function RunFilters({ search }: { readonly search: RunSearch }) {
  const navigate = useNavigate({ from: "/runs" });
  const set = (changed: RunSearch): void =>
    void navigate({ search: (before) => ({ ...before, ...changed }), replace: true });
  const isListed = statuses.some(([value]) => value === (search.status ?? ""));
  const [isCustom, setCustom] = useState(!isSpan(search.since) || search.until !== undefined);
  return (
    <form className="filters" onSubmit={(event) => event.preventDefault()}>
      <label>
        Status
        <select value={search.status ?? ""} onChange={(event) => set({ status: event.target.value || undefined })}>
          {statuses.map(([value, name]) => (
            <option key={name} value={value}>
              {name}
            </option>
          ))}
          {!isListed && <option value={search.status}>{search.status?.toLowerCase()}</option>}
        </select>
      </label>
      <label>
        Started
        <select
          value={isCustom ? "custom" : (search.since ?? "")}
          onChange={(event) => {
            const chosen = event.target.value;
            setCustom(chosen === "custom");
            set({ since: chosen === "custom" ? undefined : chosen || undefined, until: undefined });
          }}
        >
          {spans.map(([value, name]) => (
            <option key={name} value={value}>
              {name}
            </option>
          ))}
          <option value="custom">custom range…</option>
        </select>
      </label>
      {isCustom && (
        <>
          <TimeFilter name="From" value={search.since} onChange={(since) => set({ since })} />
          <TimeFilter name="Until" value={search.until} onChange={(until) => set({ until })} />
        </>
      )}
      <TextFilter name="Workflow" value={search.workflow} onChange={(workflow) => set({ workflow })} />
      <TextFilter
        key={search.labels}
        name="Labels"
        placeholder="key:value, key:value"
        value={search.labels}
        check={(text) =>
          labelPairs(text).length === text.split(",").length ? undefined : "write key:value, key:value"
        }
        onChange={(labels) => set({ labels: cleanLabels(labels) })}
      />
      <TextFilter name="Id prefix" value={search.prefix} onChange={(prefix) => set({ prefix })} />
      <label className="check">
        <input
          type="checkbox"
          checked={search.inDoubt === true}
          onChange={(event) => set({ inDoubt: event.target.checked || undefined })}
        />
        in doubt only
      </label>
      <LabelButtons labels={search.labels} onChange={(labels) => set({ labels })} />
    </form>
  );
}

/** The labels in the filter; a click removes one. */
function LabelButtons({
  labels,
  onChange,
}: {
  readonly labels: string | undefined;
  readonly onChange: (labels: string | undefined) => void;
}) {
  return labelPairs(labels).map(({ text, shown }) => (
    <button
      key={text}
      type="button"
      className="label"
      aria-label={`Remove ${shown}`}
      onClick={() => onChange(withoutLabel(labels, text))}
    >
      {shown} ×
    </button>
  ));
}

function TimeFilter({
  name,
  value,
  onChange,
}: {
  readonly name: string;
  readonly value: string | undefined;
  readonly onChange: (time: string | undefined) => void;
}) {
  return (
    <label>
      {name}
      <input
        type="datetime-local"
        defaultValue={value ?? ""}
        onChange={(event) => onChange(event.target.value || undefined)}
      />
    </label>
  );
}

/** Applies on Enter and on blur, not on every key. */
function TextFilter({
  name,
  value,
  placeholder,
  check = () => undefined,
  onChange,
}: {
  readonly name: string;
  readonly value: string | undefined;
  readonly placeholder?: string;
  /** What is wrong with a text that is not empty. */
  readonly check?: (text: string) => string | undefined;
  readonly onChange: (text: string | undefined) => void;
}) {
  const [text, setText] = useState(value ?? "");
  const given = text.trim();
  const problem = given === "" ? undefined : check(given);
  const apply = (): void => {
    if (problem === undefined) onChange(given === "" ? undefined : given);
  };
  return (
    <label>
      {name}
      <input
        value={text}
        aria-invalid={problem !== undefined}
        title={problem}
        placeholder={placeholder ?? "any"}
        onChange={(event) => setText(event.target.value)}
        onBlur={apply}
        onKeyDown={(event) => event.key === "Enter" && apply()}
      />
    </label>
  );
}
