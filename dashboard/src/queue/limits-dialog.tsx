import { useState } from "react";
import { call, type Queue, type QueueChange, type RateLimit } from "../api.ts";
import { ReasonDialog } from "../ui/reason-dialog.tsx";

const units = [
  ["second", 1_000],
  ["minute", 60_000],
  ["hour", 3_600_000],
  ["day", 86_400_000],
] as const;

/** What the operator has typed; empty: no limit. */
interface Draft {
  readonly slots: string;
  readonly limit: string;
  readonly perMs: number;
  readonly burst: string;
}

const draftOf = (concurrency: number | undefined, rate: RateLimit | undefined): Draft => ({
  slots: concurrency === undefined ? "" : String(concurrency),
  limit: rate === undefined ? "" : String(rate.limit),
  perMs: rate?.perMs ?? 60_000,
  burst: String(rate?.burst ?? 1),
});

const slotsOf = ({ slots }: Draft): number | null => (slots.trim() === "" ? null : Number(slots));
const rateOf = ({ limit, perMs, burst }: Draft): RateLimit | null =>
  limit.trim() === "" ? null : { limit: Number(limit), perMs, burst: Number(burst) };
const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Only what differs from the limits in effect: what the operator has not touched keeps following the definition. */
function changeOf({ limits }: Queue, overall: Draft, perKey: Draft): QueueChange {
  const before = [draftOf(limits.concurrency, limits.rate), draftOf(limits.perKey?.concurrency, limits.perKey?.rate)];
  const differing = (now: Draft, old: Draft) => ({
    ...(isSame(slotsOf(now), slotsOf(old)) ? {} : { concurrency: slotsOf(now) }),
    ...(isSame(rateOf(now), rateOf(old)) ? {} : { rate: rateOf(now) }),
  });
  const ofKeys = differing(perKey, before[1]!);
  return { ...differing(overall, before[0]!), ...(Object.keys(ofKeys).length > 0 && { perKey: ofKeys }) };
}

/** Sets limits until they are reset. The definition in the code stays as it is. */
export function LimitsDialog({ queue, onClose }: { readonly queue: Queue; readonly onClose: () => void }) {
  const { name, limits } = queue;
  const [overall, setOverall] = useState(() => draftOf(limits.concurrency, limits.rate));
  const [perKey, setPerKey] = useState(() => draftOf(limits.perKey?.concurrency, limits.perKey?.rate));
  const change = changeOf(queue, overall, perKey);
  return (
    <ReasonDialog
      title={`Set limits of ${name}`}
      label="Set limits"
      ready={Object.keys(change).length > 0}
      run={(reason, key) => call("queues.set", { params: { name }, body: { change, reason }, key })}
      onClose={onClose}
    >
      <p>In effect until they are reset, whatever the definition says. A lower limit evicts no run. Empty: no limit.</p>
      <LimitFields title="The queue" draft={overall} onChange={setOverall} />
      <LimitFields title="Each key" draft={perKey} onChange={setPerKey} />
    </ReasonDialog>
  );
}

function LimitFields({
  title,
  draft,
  onChange,
}: {
  readonly title: string;
  readonly draft: Draft;
  readonly onChange: (draft: Draft) => void;
}) {
  const isListed = units.some(([, ms]) => ms === draft.perMs);
  return (
    <fieldset>
      <legend>{title}</legend>
      <NumberField label="Runs at once" value={draft.slots} onChange={(slots) => onChange({ ...draft, slots })} />
      <NumberField label="Starts" value={draft.limit} onChange={(limit) => onChange({ ...draft, limit })} />
      <label>
        per
        <select value={draft.perMs} onChange={(event) => onChange({ ...draft, perMs: Number(event.target.value) })}>
          {units.map(([unit, ms]) => (
            <option key={unit} value={ms}>
              {unit}
            </option>
          ))}
          {!isListed && <option value={draft.perMs}>{draft.perMs} ms</option>}
        </select>
      </label>
      <NumberField
        label="at most at once"
        required
        value={draft.burst}
        onChange={(burst) => onChange({ ...draft, burst })}
      />
    </fieldset>
  );
}

function NumberField({
  label,
  value,
  required = false,
  onChange,
}: {
  readonly label: string;
  readonly value: string;
  readonly required?: boolean;
  readonly onChange: (value: string) => void;
}) {
  return (
    <label>
      {label}
      <input
        type="number"
        min={1}
        step={1}
        required={required}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}
