import { Link } from "@tanstack/react-router";
import { call, type Effect, type Tree } from "../api.ts";
import { brief, formatDuration, unwrap } from "../format.ts";
import { usePermissions } from "../session.tsx";
import { Badge } from "../ui/badge.tsx";
import { ConfirmAction } from "../ui/confirm-action.tsx";
import { Empty } from "../ui/empty.tsx";

type TreeRun = Tree["runs"][number];

/** The run with its parents and children, and the obligations of each, in the order in which they are compensated. */
export function RunTree({ tree, current }: { readonly tree: Tree; readonly current: string }) {
  const { runs, obligations, more } = tree;
  const known = new Set(runs.map(({ journal }) => journal));
  const roots = runs.filter(({ parent }) => parent === null || !known.has(parent));
  return (
    <section aria-label="Tree">
      {runs.length === 1 && obligations.length === 0 ? (
        <Empty title="No child runs, no obligations">
          Children that the run starts with <code>tape.spawn(…)</code>, and compensations that it owes, appear here.
        </Empty>
      ) : (
        <ul className="tree">
          {roots.map((run) => (
            <li key={run.journal}>
              <Branch {...{ run, tree, current }} />
            </li>
          ))}
        </ul>
      )}
      {obligations.length > 1 && <p className="muted small">Compensations run from the top: newest effect first.</p>}
      {more && <p className="muted small">Only the oldest runs are shown.</p>}
    </section>
  );
}

/** Newest position first, which is the order of compensation. */
function Branch({ run, tree, current }: { readonly run: TreeRun; readonly tree: Tree; readonly current: string }) {
  const obligations = tree.obligations.filter((obligation) => obligation.run === run.journal);
  const children = tree.runs.filter(({ parent }) => parent === run.journal);
  const nodes = [
    ...obligations.map((effect) => ({
      ...{ pos: effect.pos, key: `${effect.pos}.${effect.sub}` },
      node: <Obligation run={run} effect={effect} />,
    })),
    ...children.map((child) => ({
      ...{ pos: child.parentPos ?? 0, key: child.id },
      node: <Branch run={child} {...{ tree, current }} />,
    })),
  ].toSorted((a, b) => b.pos - a.pos);
  return (
    <>
      <div className="node">
        <Badge status={run.status} />
        {run.id === current ? (
          <strong className="mono current">{run.id}</strong>
        ) : (
          <Link to="/runs/$id" params={{ id: run.id }} search={{ tab: "tree" }} className="mono" data-row>
            {run.id}
          </Link>
        )}
        <span className="muted small">
          {run.workflow}
          {run.parentPos === null ? "" : `, started at position ${run.parentPos}`}
          {run.endedAt === null ? "" : `, took ${formatDuration(run.endedAt - run.createdAt)}`}
        </span>
      </div>
      {nodes.length > 0 && (
        <ul>
          {nodes.map(({ key, node }) => (
            <li key={key}>{node}</li>
          ))}
        </ul>
      )}
    </>
  );
}

/** "compensation of flight.book": it receives the effect's result. */
function Obligation({ run, effect }: { readonly run: TreeRun; readonly effect: Effect }) {
  const { operate } = usePermissions();
  const { id, status: runStatus, endedAt } = run;
  const { name, pos, surplus, status, args } = effect;
  const input = unwrap(args) as { readonly result?: unknown } | undefined;
  return (
    <div className="node">
      <Badge status={status} />
      <span>
        compensation of {surplus && "surplus "}
        <strong>{name ?? "an effect without compensate"}</strong>
      </span>
      <span className="muted small">
        position {pos} {brief(input?.result, 60)}
      </span>
      {operate && status === "ARMED" && endedAt === null && (
        <ConfirmAction
          label="Compensate"
          title={`Compensate ${name} of ${id}`}
          danger
          run={({ reason }) =>
            call("effects.resolve", { params: { id, pos, sub: 0 }, body: { resolution: { as: "compensate" }, reason } })
          }
        >
          <p>
            The compensation runs now, although the run has not failed.
            {runStatus === "RUNNING" && " This fences the run's current owner; the run resumes at once in a new term."}
          </p>
        </ConfirmAction>
      )}
    </div>
  );
}
