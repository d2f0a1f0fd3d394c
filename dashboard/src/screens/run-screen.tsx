import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { ApiError, call, type Run } from "../api.ts";
import { modelUsage } from "../conversation/conversation-queries.ts";
import { ConversationView } from "../conversation/conversation-view.tsx";
import { describeFailure, formatDuration, unwrap } from "../format.ts";
import * as queries from "../queries.ts";
import { PositionCard } from "../queue/position-card.tsx";
import { ForkDialog } from "../run/fork-dialog.tsx";
import { Journal } from "../run/journal.tsx";
import { RunErase } from "../run/run-erase.tsx";
import { RunTakeover } from "../run/run-takeover.tsx";
import { RunTree } from "../run/run-tree.tsx";
import { StreamCards } from "../run/stream-cards.tsx";
import { StreamsTab } from "../run/streams-tab.tsx";
import { TalkCards } from "../run/talk-cards.tsx";
import { Timeline } from "../run/timeline.tsx";
import { usePermissions } from "../session.tsx";
import { Badge } from "../ui/badge.tsx";
import { BudgetBar } from "../ui/budget-bar.tsx";
import { ConfirmAction } from "../ui/confirm-action.tsx";
import { EffectTable } from "../ui/effect-table.tsx";
import { Empty } from "../ui/empty.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { Facts } from "../ui/facts.tsx";
import { GateCard } from "../ui/gate-card.tsx";
import { InDoubtCard } from "../ui/in-doubt-card.tsx";
import { Json } from "../ui/json.tsx";
import { LabelChip } from "../ui/label-chip.tsx";
import { LoadMore } from "../ui/load-more.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { RunLink } from "../ui/run-link.tsx";
import { Screen } from "../ui/screen.tsx";
import { StuckCard } from "../ui/stuck-card.tsx";
import { TermTable } from "../ui/term-table.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";
import { useNames } from "../ui/use-names.ts";
import { useNow } from "../ui/use-now.ts";

export const runTabs = [
  "timeline",
  "conversation",
  "streams",
  "journal",
  "tree",
  "terms",
  "effects",
  "result",
] as const;
export type RunTab = (typeof runTabs)[number];
const tabNames: Readonly<Record<RunTab, string>> = {
  timeline: "Timeline",
  conversation: "Conversation",
  streams: "Streams",
  journal: "Journal",
  tree: "Tree",
  terms: "Term history",
  effects: "Effects",
  result: "Input and result",
};

export function RunScreen() {
  const { id } = useParams({ from: "/runs/$id" });
  const run = useQuery(queries.run(id));
  if (run.data !== undefined) return <RunView key={id} run={run.data} />;
  if (run.error instanceof ApiError && run.error.code === "TAPE_RUN_NOT_FOUND") {
    return (
      <Screen title={`Run ${id} not found`}>
        <p>
          No run id starts with it either. <Link to="/runs">Browse all runs</Link>, or search for effect:business key.
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
  const { id, status, endedAt, outcome } = run;
  const usage = useQuery(modelUsage([id]));
  const streams = useQuery(queries.runStreams(run)).data?.streams ?? [];
  // A run that has called a model opens with its conversation. Until that is known, no tab is chosen.
  const isAgent = (usage.data?.get(id)?.calls ?? 0) > 0;
  const first: RunTab | undefined = isAgent ? "conversation" : usage.isPending ? undefined : "timeline";
  const { tab = first } = useSearch({ from: "/runs/$id" });
  const tabs = runTabs.filter((name) => name !== "streams" || streams.length > 0 || tab === "streams");
  const head = useQuery(queries.runHead(run)).data?.head ?? 0;
  const terms = useQuery(queries.runTerms(run));
  const effects = useQuery(queries.runEffects(id));
  const timers = useQuery(queries.runTimers(id)).data?.timers ?? [];
  return (
    <>
      <Head run={run} />
      {endedAt !== null && status !== "COMPLETED" && describeFailure(outcome) !== "" && (
        <section className="error-message" aria-label="Why the run ended">
          <strong>{status}</strong>
          <p>{describeFailure(outcome)}</p>
        </section>
      )}
      {endedAt === null && <PositionCard run={run} />}
      <AttentionCards run={run} tab={tab} />
      <TalkCards run={run} />
      {tab !== "conversation" && tab !== "streams" && <StreamCards run={run} />}
      <nav className="tabs" aria-label="Views of the run">
        {tabs.map((name) => (
          <Link
            key={name}
            to="/runs/$id"
            params={{ id }}
            search={{ tab: name }}
            replace
            {...(tab === name ? { "aria-current": "page" as const, className: "current" } : { className: "" })}
          >
            {tabNames[name]}
          </Link>
        ))}
      </nav>
      {tab === "timeline" && (
        <Timeline
          {...{ run, head, timers }}
          terms={terms.data?.terms ?? []}
          effects={(effects.data?.effects ?? []).filter(({ sub }) => sub === 0)}
        />
      )}
      {tab === "conversation" && <ConversationView run={run} />}
      {tab === "streams" && <StreamsTab run={run} />}
      {tab === "journal" && <Journal run={run} head={head} />}
      {tab === "tree" && <TreeTab id={id} />}
      {tab === "terms" && <QueryView of={terms}>{(data) => <TermTable terms={data.terms} />}</QueryView>}
      {tab === "effects" && <EffectsTab id={id} />}
      {tab === "result" && <ResultTab run={run} />}
    </>
  );
}

/** The conversation shows these where they belong. */
const toolApproval = "tool approval";

/** Effects in doubt and open gates of this run, and why it is stuck. */
function AttentionCards({ run, tab }: { readonly run: Run; readonly tab: RunTab | undefined }) {
  const { id, status } = run;
  const inDoubt = useQuery(queries.runInDoubt(id)).data?.inDoubt;
  const open = useQuery(queries.runGates(id)).data?.gates ?? [];
  const gates = tab === "conversation" ? open.filter(({ name }) => name !== toolApproval) : open;
  if ((inDoubt ?? []).length === 0 && gates.length === 0 && status !== "STUCK") return null;
  return (
    <section className="cards" aria-label="Needs attention">
      {inDoubt?.map((entry) => (
        <InDoubtCard key={`${entry.effect.pos} ${entry.effect.sub}`} entry={entry} />
      ))}
      {gates.map((gate) => (
        <GateCard key={gate.pos} gate={gate} run={id} />
      ))}
      {status === "STUCK" && inDoubt?.length === 0 && <StuckCard run={run} />}
    </section>
  );
}

function EffectsTab({ id }: { readonly id: string }) {
  const effects = useInfiniteQuery(queries.runEffectPages(id));
  return (
    <QueryView of={effects}>
      {({ effects: rows }) =>
        rows.length === 0 ? (
          <Empty title="No effects" />
        ) : (
          <>
            <EffectTable effects={rows} />
            <LoadMore of={effects} />
          </>
        )
      }
    </QueryView>
  );
}

function TreeTab({ id }: { readonly id: string }) {
  return <QueryView of={useQuery(queries.runTree(id))}>{(data) => <RunTree tree={data} current={id} />}</QueryView>;
}

/** In every other status the outcome is decided already. */
const cancellable: ReadonlySet<string> = new Set(["QUEUED", "RUNNABLE", "RUNNING", "WAITING", "STUCK"]);

function Head({ run }: { readonly run: Run }) {
  const permissions = usePermissions();
  const now = useNow();
  const [forking, setForking] = useState(false);
  const { id, status, workflow, version, createdAt, endedAt, lease, labels, root, journal } = run;
  const nameOf = useNames(root === journal ? [] : [root]);
  const owner =
    lease.state === "FREE" ? "no owner" : `owned by ${lease.label} (${lease.reactor}, token ${lease.token})`;
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
              ? `, open for ${formatDuration(now - createdAt)}, ${owner}`
              : `, took ${formatDuration(endedAt - createdAt)}`}
            {run.erased && ", payloads erased"}
            {root !== journal && nameOf(root) !== undefined && (
              <>
                , root run <RunLink id={nameOf(root)!} />
              </>
            )}
          </p>
          {Object.entries(labels as Readonly<Record<string, string>>).map(([key, value]) => (
            <LabelChip key={key} name={key} value={value} />
          ))}
        </div>
        <div className="actions">
          {permissions.operate && !run.erased && (
            <button type="button" onClick={() => setForking(true)}>
              Fork
            </button>
          )}
          {permissions.operate && lease.state !== "FREE" && <RunTakeover id={id} owner={lease.label} />}
          {permissions.erase && endedAt !== null && !run.erased && <RunErase id={id} />}
          {permissions.start && cancellable.has(status) && (
            <ConfirmAction
              label="Cancel"
              submitLabel="Cancel run"
              dismissLabel="Keep running"
              title={`Cancel ${id}`}
              danger
              run={({ reason, key }) => call("runs.cancel", { params: { id }, body: { reason }, key })}
            >
              <p>Requests cancellation. Compensations that the run owes will run.</p>
            </ConfirmAction>
          )}
        </div>
      </header>
      {forking && <ForkDialog id={id} onClose={() => setForking(false)} />}
    </>
  );
}

function ResultTab({ run }: { readonly run: Run }) {
  const { id } = run;
  const first = useQuery(queries.runRecords(id, 1, 1));
  const budgets = useQuery(queries.runBudgets(id)).data?.budgets ?? [];
  const created = unwrap(first.data?.records[0]?.data) as
    | { input?: unknown; forkedFrom?: string; startedBy?: string; schedule?: string }
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
            ...(created?.startedBy === undefined
              ? []
              : [["Started by", <RunLink key="by" id={created.startedBy} />] as const]),
            ...(created?.schedule === undefined ? [] : [["Schedule", created.schedule] as const]),
          ]}
        />
      </section>
      <section className="card" aria-labelledby="result">
        <h2 id="result">{run.endedAt === null ? "No result yet" : "Result"}</h2>
        {run.endedAt !== null && <Json value={run.outcome ?? null} label="Result" />}
      </section>
      {budgets.length > 0 && (
        <section className="card" aria-labelledby="budgets">
          <h2 id="budgets">Budgets</h2>
          {budgets.map(({ unit, cap, spent, reserved }) => (
            <BudgetBar key={unit} {...{ unit, cap, spent, reserved }} />
          ))}
        </section>
      )}
    </div>
  );
}
