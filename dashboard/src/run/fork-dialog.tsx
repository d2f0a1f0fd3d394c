import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { call, type ForkPlan } from "../api.ts";
import { withText } from "../conversation/edited-input.ts";
import { brief, unwrap } from "../format.ts";
import { forkPlan, runRecords } from "../queries.ts";
import { ErrorMessage } from "../ui/error-message.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { ReasonDialog } from "../ui/reason-dialog.tsx";

export interface ForkDialogProps {
  readonly id: string;
  /** The position that is offered first. Default: the first operation that failed or is open. */
  readonly at?: number;
  /** A message of the run's input that may be edited. */
  readonly message?: string | undefined;
  readonly onClose: () => void;
}

/** Starts a new run from a position of this one, after it has shown what is kept, re-executed and repeated. */
export function ForkDialog({ id, at: first, message, onClose }: ForkDialogProps) {
  const navigate = useNavigate();
  const [at, setAt] = useState(first);
  const edit = useEditedInput(id, message);
  const [repeat, setRepeat] = useState<readonly number[]>([]);
  const [keepCompensated, setKeep] = useState<readonly number[]>([]);
  const plan = useQuery(forkPlan(id, at));
  return (
    <ReasonDialog
      title={`Fork ${id}`}
      label="Fork"
      ready={isAllowed(plan.data, repeat, keepCompensated)}
      run={(reason, key) => {
        const position = plan.data === undefined ? {} : { at: plan.data.at };
        return call("runs.fork", {
          params: { id },
          body: { ...position, repeat: [...repeat], keepCompensated: [...keepCompensated], ...edit.input, reason },
          key,
        });
      }}
      onDone={(created) => void navigate({ to: "/runs/$id", params: { id: created.id } })}
      onClose={onClose}
    >
      <p className="muted">A new run starts from this position, with the current code. This run does not change.</p>
      {edit.text !== undefined && (
        <label>
          Message
          <textarea rows={3} value={edit.text} onChange={(event) => edit.onText(event.target.value)} />
        </label>
      )}
      {plan.error !== null && <ErrorMessage error={plan.error} />}
      <QueryView of={{ data: plan.data, error: null }}>
        {(data) => (
          <PlanParts
            plan={data}
            repeat={repeat}
            keep={keepCompensated}
            onPosition={(pos) => {
              setAt(pos);
              setRepeat([]);
              setKeep([]);
            }}
            onRepeat={(pos, chosen) => setRepeat((before) => toggled(before, pos, chosen))}
            onKeep={(pos, chosen) => setKeep((before) => toggled(before, pos, chosen))}
          />
        )}
      </QueryView>
    </ReasonDialog>
  );
}

/** Where the message is a field of the run's input, the new run can get another one. */
function useEditedInput(id: string, message: string | undefined) {
  const created = useQuery({ ...runRecords(id, 1, 1), enabled: message !== undefined }).data?.records[0];
  const [text, onText] = useState(message ?? "");
  const { input } = (unwrap(created?.data) ?? {}) as { input?: unknown };
  const edited = message === undefined ? undefined : withText(input, message, text);
  return {
    text: edited === undefined ? undefined : text,
    onText,
    input: edited === undefined || text === message ? {} : { input: edited },
  };
}

const toggled = (before: readonly number[], pos: number, chosen: boolean): readonly number[] =>
  chosen ? [...before, pos] : before.filter((other) => other !== pos);

/** The operator has ticked each effect that would happen twice, and each that is kept although it was compensated. */
function isAllowed(plan: ForkPlan | undefined, repeat: readonly number[], keep: readonly number[]): boolean {
  if (plan === undefined || !plan.compensated.every(({ pos }) => keep.includes(pos))) return false;
  return plan.alreadyHappened.every(({ pos, repeatable }) => repeatable || repeat.includes(pos));
}

function PlanParts({
  plan,
  repeat,
  keep,
  onPosition,
  onRepeat,
  onKeep,
}: {
  readonly plan: ForkPlan;
  readonly repeat: readonly number[];
  readonly keep: readonly number[];
  readonly onPosition: (pos: number) => void;
  readonly onRepeat: (pos: number, chosen: boolean) => void;
  readonly onKeep: (pos: number, chosen: boolean) => void;
}) {
  const operations = [...plan.kept, ...plan.rerun];
  const end = (operations.at(-1)?.pos ?? -1) + 1;
  return (
    <>
      <label>
        Fork at
        <select value={plan.at} onChange={(event) => onPosition(Number(event.target.value))}>
          {operations.map(({ pos, what, name }) => (
            <option key={pos} value={pos}>
              {pos}: {what} {name}
            </option>
          ))}
          <option value={end}>{end}: end of the run</option>
        </select>
      </label>
      <div className="fork-parts">
        <section aria-labelledby="fork-kept">
          <h3 id="fork-kept">Kept</h3>
          <Operations of={plan.kept} none="Nothing" />
        </section>
        <section aria-labelledby="fork-executed">
          <h3 id="fork-executed">Executed again</h3>
          <Operations of={plan.rerun} none="Nothing that was recorded" />
        </section>
      </div>
      {plan.alreadyHappened.length > 0 && (
        <RepeatChoices of={plan.alreadyHappened} repeat={repeat} onRepeat={onRepeat} />
      )}
      {plan.compensated.length > 0 && <KeepChoices of={plan.compensated} keep={keep} onKeep={onKeep} />}
      {plan.notCompensated.length > 0 && (
        <p className="muted">
          If the new run fails, it does not compensate what it kept:{" "}
          {plan.notCompensated.map(({ name }) => name).join(", ")}.
        </p>
      )}
    </>
  );
}

function RepeatChoices({
  of,
  repeat,
  onRepeat,
}: {
  readonly of: ForkPlan["alreadyHappened"];
  readonly repeat: readonly number[];
  readonly onRepeat: (pos: number, chosen: boolean) => void;
}) {
  return (
    <fieldset className="fork-choices">
      <legend>Already happened upstream</legend>
      {of.map(({ pos, name, args, repeatable, businessKey }) => (
        <label key={pos} className="check">
          <input
            type="checkbox"
            disabled={repeatable}
            checked={repeatable || repeat.includes(pos)}
            onChange={(event) => onRepeat(pos, event.target.checked)}
          />
          <span>
            <strong>{name}</strong> {businessKey} <span className="mono small muted">{brief(args, 70)}</span>
            <span className="small block">{repeatable ? "Safe to repeat" : "Let it happen a second time"}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

function KeepChoices({
  of,
  keep,
  onKeep,
}: {
  readonly of: ForkPlan["compensated"];
  readonly keep: readonly number[];
  readonly onKeep: (pos: number, chosen: boolean) => void;
}) {
  return (
    <fieldset className="fork-choices">
      <legend>Kept, but this run compensated it or still may</legend>
      {of.map(({ pos, name, obligation }) => (
        <label key={pos} className="check">
          <input type="checkbox" checked={keep.includes(pos)} onChange={(event) => onKeep(pos, event.target.checked)} />
          <span>
            <strong>{name}</strong> <span className="mono small muted">{obligation}</span>
            <span className="small block">Keep it anyway; or fork at {pos} to execute it again</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

function Operations({ of, none }: { readonly of: ForkPlan["kept"]; readonly none: string }) {
  if (of.length === 0) return <p className="muted">{none}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <ol className="plain" tabIndex={0}>
      {of.map(({ pos, what, name }) => (
        <li key={pos}>
          <span className="mono muted">{pos}</span> {what} {name}
        </li>
      ))}
    </ol>
  );
}
