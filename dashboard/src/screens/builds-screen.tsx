import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Build, call, type MoveResult } from "../api.ts";
import * as queries from "../queries.ts";
import { usePermissions } from "../session.tsx";
import { Badge } from "../ui/badge.tsx";
import { ConfirmAction } from "../ui/confirm-action.tsx";
import { Empty } from "../ui/empty.tsx";
import { RunLink } from "../ui/run-link.tsx";
import { Screen } from "../ui/screen.tsx";
import { QueryTable } from "../ui/table.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";

/** Runs that no process can drive: their build is gone. */
const isUnserved = ({ live, processes }: Build): boolean => live > 0 && processes === 0;

const stateOf = (build: Build): string =>
  build.current ? "CURRENT" : build.live === 0 ? "DRAINED" : isUnserved(build) ? "UNSERVED" : "DRAINING";

export function BuildsScreen() {
  const builds = useQuery(queries.builds());
  const permissions = usePermissions();
  const [shown, setShown] = useState<string>();
  const [moved, setMoved] = useState<readonly MoveResult[]>([]);
  const current = builds.data?.builds.find((build) => build.current)?.build;
  return (
    <Screen
      title="Builds"
      about="Runs of pinned workflows stay with the build that they began on. A build is drained when no live run is pinned to it: its processes can be stopped."
    >
      <QueryTable
        of={builds}
        rows={({ builds: rows }) => rows}
        keyOf={({ build }) => build}
        isHighlighted={isUnserved}
        empty={
          <Empty title="No builds">
            Pin a workflow with <code>pinned: true</code> and name the build of its processes with{" "}
            <code>TAPE_BUILD</code>.
          </Empty>
        }
        columns={[
          { name: "Build", cell: ({ build }) => <span className="mono">{build}</span> },
          { name: "State", cell: (build) => <Badge status={stateOf(build)} /> },
          { name: "Live runs", cell: (build) => <LiveRuns {...{ build, shown, setShown }} /> },
          { name: "Processes", cell: ({ processes }) => processes },
          { name: "Pinned workflows", cell: ({ workflows }) => workflows.join(", ") },
          { name: "Last report", className: "when", cell: ({ seenAt }) => <TimeAgo at={seenAt} /> },
          {
            name: "Actions",
            cell: (build) =>
              permissions.operate && (
                <span className="actions">
                  {!build.current && <MakeCurrent build={build.build} />}
                  {!build.current && build.live > 0 && current !== undefined && (
                    <MoveRuns from={build} to={current} onMoved={setMoved} />
                  )}
                </span>
              ),
          },
        ]}
      />
      {shown !== undefined && <PinnedRuns build={shown} />}
      {moved.length > 0 && <Moved results={moved} />}
    </Screen>
  );
}

interface LiveRunsProps {
  readonly build: Build;
  readonly shown: string | undefined;
  readonly setShown: (build: string | undefined) => void;
}

function LiveRuns({ build: { build, live }, shown, setShown }: LiveRunsProps) {
  if (live === 0) return 0;
  return (
    <button
      type="button"
      className="link"
      aria-expanded={shown === build}
      onClick={() => setShown(shown === build ? undefined : build)}
    >
      {live}
    </button>
  );
}

function PinnedRuns({ build }: { readonly build: string }) {
  return (
    <section aria-label={`Live runs of ${build}`}>
      <h2>Live runs of {build}</h2>
      <QueryTable
        of={useQuery(queries.buildRuns(build))}
        rows={({ runs }) => runs}
        keyOf={({ id }) => id}
        empty={<Empty title="None: the build is drained" />}
        columns={[
          { name: "Run", cell: ({ id }) => <RunLink id={id} /> },
          { name: "Workflow", cell: ({ workflow }) => workflow },
        ]}
      />
    </section>
  );
}

function MakeCurrent({ build }: { readonly build: string }) {
  return (
    <ConfirmAction
      label="Make current"
      title={`Make ${build} current`}
      run={({ reason, key }) => call("builds.current", { params: { build }, body: { reason }, key })}
    >
      <p>Processes of other builds take no new runs of its pinned workflows. They finish the runs that they have.</p>
    </ConfirmAction>
  );
}

interface MoveRunsProps {
  readonly from: Build;
  readonly to: string;
  readonly onMoved: (results: readonly MoveResult[]) => void;
}

function MoveRuns({ from: { build, live }, to, onMoved }: MoveRunsProps) {
  return (
    <ConfirmAction
      label="Move runs"
      title={`Move ${live} runs of ${build} to ${to}`}
      danger
      run={async ({ reason }) => onMoved(await moveAll(build, to, reason))}
    >
      <p>
        Processes of {to} replay each run first. A run whose journal does not match the code there stays with {build},
        and the reason is shown.
      </p>
    </ConfirmAction>
  );
}

async function moveAll(build: string, to: string, reason: string): Promise<readonly MoveResult[]> {
  const results: MoveResult[] = [];
  for (let above: number | undefined = 0; above !== undefined; ) {
    const body = { to, reason, limit: 20, ...(above > 0 && { above }) };
    const page: Awaited<ReturnType<typeof call<"builds.move">>> = await call("builds.move", {
      params: { build },
      body,
    });
    results.push(...page.runs);
    above = page.above;
  }
  return results;
}

function Moved({ results }: { readonly results: readonly MoveResult[] }) {
  const moved = results.filter(({ result }) => result === "moved").length;
  const stayed = results.filter(({ result }) => result !== "moved");
  return (
    <section aria-label="Result of the move" role="status">
      <p>
        {moved} of {results.length} runs moved.
      </p>
      <ul>
        {stayed.map(({ run, result, reason }) => (
          <li key={run}>
            <RunLink id={run} />: {result}
            {reason === undefined ? "" : `, ${reason}`}
          </li>
        ))}
      </ul>
    </section>
  );
}
