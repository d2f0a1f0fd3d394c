import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { call, type Plan } from "../api.ts";
import { brief } from "../format.ts";
import { ErrorMessage } from "../ui/error-message.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { ReasonDialog } from "../ui/reason-dialog.tsx";

/** A new run from a point of this one: what is kept, what runs again, and what would happen a second time. */
export function ForkDialog({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const go = useNavigate();
  const [at, setAt] = useState<number>();
  const [again, setAgain] = useState<readonly number[]>([]);
  const [keepCompensated, setKeep] = useState<readonly number[]>([]);
  const plan = useQuery({
    queryKey: ["fork", id, at],
    queryFn: () => call("runs.forkPlan", { params: { id }, query: { at } }),
    placeholderData: (before) => before,
    meta: { settled: true },
    retry: false,
  });
  return (
    <ReasonDialog
      title={`Fork ${id}`}
      label="Fork"
      ready={isAllowed(plan.data, again, keepCompensated)}
      give={(reason, key) =>
        call("runs.fork", { params: { id }, body: { at: plan.data?.at, again, keepCompensated, reason }, key })
      }
      onDone={(made) => void go({ to: "/runs/$id", params: { id: made.id } })}
      onClose={onClose}
    >
      <p className="muted">A new run goes on from this point with the code as it is now. This one is left alone.</p>
      {plan.error !== null && <ErrorMessage error={plan.error} />}
      <QueryView of={{ data: plan.data, error: null }}>
        {(data) => (
          <PlanParts
            plan={data}
            again={again}
            keep={keepCompensated}
            onPoint={(point) => {
              setAt(point);
              setAgain([]);
              setKeep([]);
            }}
            onAgain={(pos, chosen) => setAgain((before) => toggled(before, pos, chosen))}
            onKeep={(pos, chosen) => setKeep((before) => toggled(before, pos, chosen))}
          />
        )}
      </QueryView>
    </ReasonDialog>
  );
}

const toggled = (before: readonly number[], pos: number, chosen: boolean): readonly number[] =>
  chosen ? [...before, pos] : before.filter((one) => one !== pos);

/** Each effect that would happen twice, or is kept although it was undone, was chosen. */
function isAllowed(plan: Plan | undefined, again: readonly number[], keep: readonly number[]): boolean {
  if (plan === undefined || !plan.undone.every(({ pos }) => keep.includes(pos))) return false;
  return plan.happened.every(({ pos, repeatable }) => repeatable || again.includes(pos));
}

function PlanParts({
  plan,
  again,
  keep,
  onPoint,
  onAgain,
  onKeep,
}: {
  readonly plan: Plan;
  readonly again: readonly number[];
  readonly keep: readonly number[];
  readonly onPoint: (at: number) => void;
  readonly onAgain: (pos: number, chosen: boolean) => void;
  readonly onKeep: (pos: number, chosen: boolean) => void;
}) {
  const operations = [...plan.kept, ...plan.again];
  const last = (operations.at(-1)?.pos ?? -1) + 1;
  return (
    <>
      <label>
        Go on from
        <select value={plan.at} onChange={(event) => onPoint(Number(event.target.value))}>
          {operations.map(({ pos, what, name }) => (
            <option key={pos} value={pos}>
              {pos}: {what} {name}
            </option>
          ))}
          <option value={last}>{last}: its end</option>
        </select>
      </label>
      <div className="fork-parts">
        <section aria-labelledby="fork-kept">
          <h3 id="fork-kept">Kept</h3>
          <Operations of={plan.kept} none="nothing" />
        </section>
        <section aria-labelledby="fork-again">
          <h3 id="fork-again">Runs again</h3>
          <Operations of={plan.again} none="nothing that was recorded" />
        </section>
      </div>
      {plan.happened.length > 0 && (
        <fieldset className="happened">
          <legend>Has already happened in the world</legend>
          {plan.happened.map(({ pos, name, args, repeatable, businessKey }) => (
            <label key={pos} className="check">
              <input
                type="checkbox"
                disabled={repeatable}
                checked={repeatable || again.includes(pos)}
                onChange={(event) => onAgain(pos, event.target.checked)}
              />
              <span>
                <strong>{name}</strong> {businessKey} <span className="mono small muted">{brief(args, 70)}</span>
                <span className="small block">
                  {repeatable ? "does no harm a second time" : "let it happen a second time"}
                </span>
              </span>
            </label>
          ))}
        </fieldset>
      )}
      {plan.undone.length > 0 && (
        <fieldset className="happened">
          <legend>Kept although it was undone, or may still be by this run</legend>
          {plan.undone.map(({ pos, name, obligation }) => (
            <label key={pos} className="check">
              <input
                type="checkbox"
                checked={keep.includes(pos)}
                onChange={(event) => onKeep(pos, event.target.checked)}
              />
              <span>
                <strong>{name}</strong> <span className="mono small muted">{obligation}</span>
                <span className="small block">keep it all the same; or go on from {pos} to do it again</span>
              </span>
            </label>
          ))}
        </fieldset>
      )}
      {plan.notUndone.length > 0 && (
        <p className="muted">
          If the new run fails, it does not undo what it kept: {plan.notUndone.map(({ name }) => name).join(", ")}.
        </p>
      )}
    </>
  );
}

function Operations({ of, none }: { readonly of: Plan["kept"]; readonly none: string }) {
  if (of.length === 0) return <p className="muted">{none}</p>;
  return (
    <ol className="plain">
      {of.map(({ pos, what, name }) => (
        <li key={pos}>
          <span className="mono muted">{pos}</span> {what} {name}
        </li>
      ))}
    </ol>
  );
}
