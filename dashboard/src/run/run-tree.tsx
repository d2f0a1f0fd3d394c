import { Link } from "@tanstack/react-router";
import { call, type Effect, type Tree } from "../api.ts";
import { brief, formatDuration, unwrap } from "../format.ts";
import { usePermissions } from "../session.tsx";
import { Badge } from "../ui/badge.tsx";
import { ConfirmAction } from "../ui/confirm-action.tsx";
import { Empty } from "../ui/empty.tsx";

type TreeRun = Tree["runs"][number];

/** The run within its family: children under what started them, and under each run what must be undone, in order. */
export function RunTree({ tree, here }: { readonly tree: Tree; readonly here: string }) {
  const { runs, obligations, more } = tree;
  const known = new Set(runs.map(({ journal }) => journal));
  const roots = runs.filter(({ parent }) => parent === null || !known.has(parent));
  return (
    <section aria-label="Tree">
      {runs.length === 1 && obligations.length === 0 ? (
        <Empty title="A run by itself">
          Children that it starts with <code>tape.spawn(…)</code>, and what must be undone if it fails, will be here.
        </Empty>
      ) : (
        <ul className="tree">
          {roots.map((run) => (
            <li key={run.journal}>
              <Branch {...{ run, tree, here }} />
            </li>
          ))}
        </ul>
      )}
      {obligations.length > 1 && (
        <p className="muted small">What must be undone is undone from the top: the newest first.</p>
      )}
      {more && <p className="muted small">There are more; these are the oldest.</p>}
    </section>
  );
}

/** What was done last is undone first: so they stand. */
function Branch({ run, tree, here }: { readonly run: TreeRun; readonly tree: Tree; readonly here: string }) {
  const owed = tree.obligations.filter((one) => one.run === run.journal);
  const children = tree.runs.filter(({ parent }) => parent === run.journal);
  const below = [
    ...owed.map((effect) => ({
      ...{ pos: effect.pos, key: `${effect.pos}.${effect.sub}` },
      node: <Owed run={run} effect={effect} />,
    })),
    ...children.map((child) => ({
      ...{ pos: child.parentPos ?? 0, key: child.id },
      node: <Branch run={child} {...{ tree, here }} />,
    })),
  ].toSorted((a, b) => b.pos - a.pos);
  return (
    <>
      <div className="node">
        <Badge status={run.status} />
        {run.id === here ? (
          <strong className="mono here">{run.id}</strong>
        ) : (
          <Link to="/runs/$id" params={{ id: run.id }} search={{ tab: "tree" }} className="mono" data-row>
            {run.id}
          </Link>
        )}
        <span className="muted small">
          {run.workflow}
          {run.parentPos === null ? "" : `, started at ${run.parentPos}`}
          {run.endedAt === null ? "" : `, took ${formatDuration(run.endedAt - run.createdAt)}`}
        </span>
      </div>
      {below.length > 0 && (
        <ul>
          {below.map(({ key, node }) => (
            <li key={key}>{node}</li>
          ))}
        </ul>
      )}
    </>
  );
}

/** "undo flight.book": what the act returned is what the undoing is given. */
function Owed({ run: { id, status: of, endedAt }, effect }: { readonly run: TreeRun; readonly effect: Effect }) {
  const { operate } = usePermissions();
  const { name, pos, surplus, status, args } = effect;
  const given = unwrap(args) as { readonly result?: unknown } | undefined;
  return (
    <div className="node owed">
      <Badge status={status} />
      <span>
        {surplus ? "undo the surplus" : "undo"} <strong>{name ?? "an act without an inverse"}</strong>
      </span>
      <span className="muted small">
        at {pos} {brief(given?.result, 60)}
      </span>
      {operate && status === "ARMED" && endedAt === null && (
        <ConfirmAction
          label="Compensate"
          title={`Undo ${name} of ${id}`}
          danger
          run={({ reason }) =>
            call("effects.resolve", { params: { id, pos, sub: 0 }, body: { resolution: { as: "compensate" }, reason } })
          }
        >
          <p>
            It is undone now, although the run has not failed.
            {of === "RUNNING" && " Whoever drives the run is fenced for that; it goes on at once under a new term."}
          </p>
        </ConfirmAction>
      )}
    </div>
  );
}
