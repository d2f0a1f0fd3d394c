import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { ApiError, call, type Run } from "../api.ts";
import { describeFailure, formatDuration, unwrap } from "../format.ts";
import { ForkDialog } from "../run/fork-dialog.tsx";
import { Journal } from "../run/journal.tsx";
import { RunTakeover } from "../run/run-takeover.tsx";
import { RunTree } from "../run/run-tree.tsx";
import { Timeline } from "../run/timeline.tsx";
import { usePermissions } from "../session.tsx";
import { Badge } from "../ui/badge.tsx";
import { BudgetBar } from "../ui/budget-bar.tsx";
import { ConfirmAction } from "../ui/confirm-action.tsx";
import { Empty } from "../ui/empty.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { Facts } from "../ui/facts.tsx";
import { GateCard } from "../ui/gate-card.tsx";
import { InDoubtCard } from "../ui/in-doubt-card.tsx";
import { Json } from "../ui/json.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { RunLink } from "../ui/run-link.tsx";
import { Screen } from "../ui/screen.tsx";
import { TermTable } from "../ui/term-table.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";
import { useNames } from "../ui/use-names.ts";
import { useNow } from "../ui/use-now.ts";
import { StuckCard } from "./attention-screen.tsx";
import { EffectTable } from "./effects-screen.tsx";

export const runTabs = ["timeline", "journal", "tree", "leases", "acts", "result"] as const;
export type RunTab = (typeof runTabs)[number];
const tabNames: Readonly<Record<RunTab, string>> = {
  timeline: "Timeline",
  journal: "Journal",
  tree: "Tree",
  leases: "Leases",
  acts: "Acts and obligations",
  result: "Input and result",
};

export function RunScreen() {
  const { id } = useParams({ from: "/runs/$id" });
  const run = useQuery({
    queryKey: ["run", id],
    queryFn: () => call("runs.get", { params: { id } }),
    refetchInterval: (query) => (query.state.data?.endedAt === null ? 2_000 : 10_000),
  });
  if (run.data !== undefined) return <RunView key={id} run={run.data} />;
  if (run.error instanceof ApiError && run.error.code === "TAPE_RUN_NOT_FOUND") {
    return (
      <Screen title={`There is no run ${id}`}>
        <p>
          None begins like this either. <Link to="/runs">Look through the runs</Link>, or search for effect:business
          key.
        </p>
      </Screen>
    );
  }
  return run.error === null ? (
    <div className="loading" role="status" aria-label="Loading" />
  ) : (
    <ErrorMessage error={run.error} />
  );
}

function RunView({ run }: { readonly run: Run }) {
  const { id } = run;
  const { tab = "timeline" } = useSearch({ from: "/runs/$id" });
  const live = run.endedAt === null ? 2_000 : 10_000;
  const asked = { params: { id } };
  const extent = useQuery({
    queryKey: ["extent", id],
    queryFn: () => call("runs.head", asked),
    refetchInterval: live,
  });
  const terms = useQuery({
    queryKey: ["run terms", id],
    queryFn: () => call("runs.terms", asked),
    refetchInterval: live,
  });
  const effects = useQuery({
    queryKey: ["effects of", id],
    queryFn: () => call("effects.list", { query: { run: id, limit: 500 } }),
  });
  const gates = useQuery({
    queryKey: ["gates of", id],
    queryFn: () => call("gates.list", { query: { run: id, open: true } }),
  });
  const doubts = useQuery({
    queryKey: ["doubts of", id],
    queryFn: () => call("inDoubt.list", { query: { run: id, limit: 50 } }),
  });
  const timers = useQuery({ queryKey: ["timers of", id], queryFn: () => call("timers.list", { query: { run: id } }) });
  const head = extent.data?.head ?? 0;
  const inDoubt = doubts.data?.doubts ?? [];
  const open = gates.data?.gates ?? [];
  return (
    <>
      <Head run={run} />
      {run.endedAt !== null && run.status !== "COMPLETED" && describeFailure(run.outcome) !== "" && (
        <section className="error-message" aria-label="Why it ended so">
          <strong>{run.status}</strong>
          <p>{describeFailure(run.outcome)}</p>
        </section>
      )}
      {(inDoubt.length > 0 || open.length > 0 || run.status === "STUCK") && (
        <section className="cards" aria-label="Needs a person">
          {inDoubt.map((doubt) => (
            <InDoubtCard key={`${doubt.effect.pos} ${doubt.effect.sub}`} doubt={doubt} />
          ))}
          {open.map((gate) => (
            <GateCard key={gate.pos} gate={gate} run={id} />
          ))}
          {run.status === "STUCK" && doubts.data?.doubts.length === 0 && <StuckCard run={run} />}
        </section>
      )}
      <nav className="tabs" aria-label="Views of the run">
        {runTabs.map((one) => (
          <Link
            key={one}
            to="/runs/$id"
            params={{ id }}
            search={{ tab: one }}
            replace
            {...(tab === one ? { "aria-current": "page" as const, className: "current" } : { className: "" })}
          >
            {tabNames[one]}
          </Link>
        ))}
      </nav>
      {tab === "timeline" && (
        <Timeline
          {...{ run, head }}
          terms={terms.data?.terms ?? []}
          effects={(effects.data?.effects ?? []).filter(({ sub }) => sub === 0)}
          timers={timers.data?.timers ?? []}
        />
      )}
      {tab === "journal" && <Journal run={run} head={head} />}
      {tab === "tree" && <TreeOf id={id} />}
      {tab === "leases" && <QueryView of={terms}>{(data) => <TermTable terms={data.terms} />}</QueryView>}
      {tab === "acts" && (
        <QueryView of={effects}>
          {(data) =>
            data.effects.length === 0 ? (
              <Empty title="This run has done nothing to the world" />
            ) : (
              <EffectTable effects={data.effects} />
            )
          }
        </QueryView>
      )}
      {tab === "result" && <Result run={run} />}
    </>
  );
}

function TreeOf({ id }: { readonly id: string }) {
  const tree = useQuery({ queryKey: ["tree", id], queryFn: () => call("runs.tree", { params: { id } }) });
  return <QueryView of={tree}>{(data) => <RunTree tree={data} here={id} />}</QueryView>;
}

/** Others have been decided already. */
const stoppable: ReadonlySet<string> = new Set(["RUNNABLE", "RUNNING", "WAITING", "STUCK"]);

function Head({ run }: { readonly run: Run }) {
  const may = usePermissions();
  const now = useNow();
  const [forking, setForking] = useState(false);
  const { id, status, workflow, version, createdAt, endedAt, lease, labels, root, journal } = run;
  const nameOf = useNames(root === journal ? [] : [root]);
  const owner = lease.state === "FREE" ? "nobody" : `${lease.label} (${lease.reactor}, token ${lease.token})`;
  return (
    <>
      <header className="screen-head">
        <div>
          <h1 className="run-title">
            <span className="mono">{id}</span> <Badge status={status} />
          </h1>
          <p className="muted">
            {workflow}
            {version === null ? "" : ` ${version}`}, started <TimeAgo at={createdAt} />
            {endedAt === null
              ? `, for ${formatDuration(now - createdAt)}`
              : `, took ${formatDuration(endedAt - createdAt)}`}
            {endedAt === null && <>, owned by {owner}</>}
            {root !== journal && nameOf(root) !== undefined && (
              <>
                , part of <RunLink id={nameOf(root)!} />
              </>
            )}
          </p>
          {Object.entries(labels as Readonly<Record<string, string>>).map(([key, value]) => (
            <Link key={key} to="/runs" search={{ label: `${key}:${value}` }} className="label">
              {key}:{value}
            </Link>
          ))}
        </div>
        <div className="actions">
          {may.operate && (
            <button type="button" onClick={() => setForking(true)}>
              Fork
            </button>
          )}
          {may.operate && lease.state !== "FREE" && <RunTakeover id={id} owner={lease.label} />}
          {may.start && stoppable.has(status) && (
            <ConfirmAction
              label="Cancel"
              title={`Cancel ${id}`}
              danger
              run={({ reason, key }) => call("runs.cancel", { params: { id }, body: { reason }, key })}
            >
              <p>It is asked to stop; what it owes is undone.</p>
            </ConfirmAction>
          )}
        </div>
      </header>
      {forking && <ForkDialog id={id} onClose={() => setForking(false)} />}
    </>
  );
}

function Result({ run }: { readonly run: Run }) {
  const { id } = run;
  const first = useQuery({
    queryKey: ["journal", id, 1, 1],
    queryFn: () => call("runs.journal", { params: { id }, query: { from: 1, limit: 1 } }),
    meta: { settled: true },
  });
  const budgets = useQuery({ queryKey: ["budgets", id], queryFn: () => call("runs.budgets", { params: { id } }) });
  const created = unwrap(first.data?.records[0]?.data) as
    | { input?: unknown; forkedFrom?: string; schedule?: string }
    | undefined;
  return (
    <div className="halves">
      <section className="card" aria-labelledby="input">
        <h2 id="input">Input</h2>
        <Json value={created?.input ?? null} label="Input" />
        <Facts
          of={[
            ...(created?.forkedFrom === undefined
              ? []
              : [["Forked from", <RunLink key="from" id={created.forkedFrom} />] as const]),
            ...(created?.schedule === undefined ? [] : [["Schedule", created.schedule] as const]),
          ]}
        />
      </section>
      <section className="card" aria-labelledby="result">
        <h2 id="result">{run.endedAt === null ? "No result yet" : "Result"}</h2>
        {run.endedAt !== null && <Json value={run.outcome ?? null} label="Result" />}
      </section>
      {(budgets.data?.budgets.length ?? 0) > 0 && (
        <section className="card" aria-labelledby="budgets">
          <h2 id="budgets">Budgets</h2>
          {budgets.data!.budgets.map((one) => (
            <BudgetBar key={one.unit} {...one} />
          ))}
        </section>
      )}
    </div>
  );
}
