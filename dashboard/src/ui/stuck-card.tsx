import { useQuery } from "@tanstack/react-query";
import { call, type Run } from "../api.ts";
import { brief, sentence } from "../format.ts";
import { stuckReason } from "../queries.ts";
import { usePermissions } from "../session.tsx";
import { Badge } from "./badge.tsx";
import { ConfirmAction } from "./confirm-action.tsx";
import { RunLink } from "./run-link.tsx";
import { TimeAgo } from "./time-ago.tsx";

/** A stuck run, with the reason from its journal. */
export function StuckCard({ run: { id, workflow, createdAt } }: { readonly run: Run }) {
  const { operate } = usePermissions();
  const { reason = "…", detail, effects = [] } = useQuery(stuckReason(id)).data ?? {};
  return (
    <article className="card attention-card" aria-label={`${id} is stuck`}>
      <header>
        <Badge status="STUCK" />
        <h2>
          <RunLink id={id} />
        </h2>
        <span className="muted small">
          {workflow}, started <TimeAgo at={createdAt} />
        </span>
      </header>
      <p>{sentence(reason)}</p>
      {detail !== undefined && <p className="mono small">{brief(detail, 300)}</p>}
      {effects.length > 0 && (
        <p className="muted">It waits for an effect in doubt. Resolve the effect, and the run resumes.</p>
      )}
      {operate && (
        <footer className="actions">
          <ConfirmAction
            label="Redrive"
            title={`Redrive ${id}`}
            primary
            run={({ reason }) => call("runs.redrive", { params: { id }, body: { reason } })}
          >
            <p>The run resumes where it stopped. Fix the cause first.</p>
          </ConfirmAction>
        </footer>
      )}
    </article>
  );
}
