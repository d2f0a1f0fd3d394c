import { useQuery } from "@tanstack/react-query";
import { inDoubt, stuckRuns } from "../queries.ts";
import { AttentionList, systemItems } from "../ui/attention-list.tsx";
import { Empty } from "../ui/empty.tsx";
import { InDoubtCard } from "../ui/in-doubt-card.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Screen } from "../ui/screen.tsx";
import { StuckCard } from "../ui/stuck-card.tsx";
import { useAttention } from "../ui/use-attention.ts";

export function AttentionScreen() {
  const system = systemItems(useAttention());
  const stuck = useQuery(stuckRuns());
  return (
    <Screen
      title="Needs attention"
      about="Effects whose outcome is unknown, and runs that cannot continue without an operator. Check the upstream, then resolve."
    >
      <QueryView of={useQuery(inDoubt())}>
        {({ inDoubt: entries, more }) => {
          // A run that is stuck on an effect in doubt resumes with that effect: one card is enough.
          const runs = (stuck.data?.runs ?? []).filter(({ id }) => entries.every(({ runId }) => runId !== id));
          return (
            <>
              {stuck.data !== undefined && entries.length + runs.length + system.length === 0 && (
                <Empty title="Nothing needs attention">
                  Effects in doubt, stuck or hung runs, sinks that do not receive events, and unserved workflows and
                  effects appear here.
                </Empty>
              )}
              {system.length > 0 && (
                <section className="card" aria-label="Processes and workers">
                  <AttentionList items={system} />
                </section>
              )}
              <div className="cards">
                {entries.map((entry) => (
                  <InDoubtCard key={`${entry.effect.run} ${entry.effect.pos} ${entry.effect.sub}`} entry={entry} />
                ))}
                {runs.map((run) => (
                  <StuckCard key={run.journal} run={run} />
                ))}
              </div>
              {more && <p className="muted">Only the oldest are shown.</p>}
            </>
          );
        }}
      </QueryView>
    </Screen>
  );
}
