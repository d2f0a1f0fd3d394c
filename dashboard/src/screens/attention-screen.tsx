import { useQuery } from "@tanstack/react-query";
import { call, type Run } from "../api.ts";
import { brief, sentence, unwrap } from "../format.ts";
import { usePermissions } from "../session.tsx";
import { Badge } from "../ui/badge.tsx";
import { ConfirmAction } from "../ui/confirm-action.tsx";
import { Empty } from "../ui/empty.tsx";
import { InDoubtCard } from "../ui/in-doubt-card.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { RunLink } from "../ui/run-link.tsx";
import { Screen } from "../ui/screen.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";

export function AttentionScreen() {
  const doubts = useQuery({
    queryKey: ["doubts"],
    queryFn: () => call("inDoubt.list", { query: { limit: 100 } }),
  });
  const stuck = useQuery({
    queryKey: ["runs", "stuck"],
    queryFn: () => call("runs.list", { query: { status: "STUCK", limit: 100 } }),
  });
  const inDoubt = doubts.data?.doubts ?? [];
  const runs = (stuck.data?.runs ?? []).filter(({ id }) => inDoubt.every(({ runId }) => runId !== id));
  return (
    <Screen
      title="Doubt"
      about="Acts of which nobody knows whether they happened, and runs that cannot go on by themselves. Look in the world, then say what you saw."
    >
      <QueryView of={doubts}>
        {({ more }) => (
          <>
            {inDoubt.length === 0 && stuck.data?.runs.length === 0 && (
              <Empty title="Nothing is in doubt">
                When an answer from the world is lost and nobody can find out by looking, it will be here.
              </Empty>
            )}
            <div className="cards">
              {inDoubt.map((doubt) => (
                <InDoubtCard key={`${doubt.effect.run} ${doubt.effect.pos} ${doubt.effect.sub}`} doubt={doubt} />
              ))}
              {runs.map((run) => (
                <StuckCard key={run.journal} run={run} />
              ))}
            </div>
            {more && <p className="muted">There are more: these are the oldest.</p>}
          </>
        )}
      </QueryView>
    </Screen>
  );
}

const lastRecords = 50;

export function StuckCard({ run }: { readonly run: Run }) {
  const { operate } = usePermissions();
  const { id, workflow, createdAt } = run;
  const why = useQuery({
    queryKey: ["stuck", id],
    queryFn: async () => {
      const { head } = await call("runs.head", { params: { id } });
      const from = Math.max(1, head - lastRecords);
      const { records } = await call("runs.journal", { params: { id }, query: { from, limit: lastRecords + 1 } });
      return unwrap(records.findLast(({ kind }) => kind === "run.stuck")?.data) as
        | { why: string; detail?: unknown; on?: unknown[] }
        | undefined;
    },
  });
  return (
    <article className="card doubt-card" aria-label={`${id} is stuck`}>
      <header>
        <Badge status="STUCK" />
        <h2>
          <RunLink id={id} />
        </h2>
        <span className="muted small">
          {workflow}, started <TimeAgo at={createdAt} />
        </span>
      </header>
      <p>{sentence(why.data?.why ?? "…")}</p>
      {why.data?.detail !== undefined && <p className="mono small">{brief(why.data.detail, 300)}</p>}
      {(why.data?.on?.length ?? 0) > 0 && (
        <p className="muted">It waits for a verdict on an act in doubt: settle that, and it goes on by itself.</p>
      )}
      {operate && (
        <footer className="actions">
          <ConfirmAction
            label="Redrive"
            title={`Let ${id} go on`}
            primary
            run={({ reason }) => call("runs.redrive", { params: { id }, body: { reason } })}
          >
            <p>It goes on from where it was. See to what stopped it first.</p>
          </ConfirmAction>
        </footer>
      )}
    </article>
  );
}
