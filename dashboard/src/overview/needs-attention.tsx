import { useQuery } from "@tanstack/react-query";
import { brief, describeReason } from "../format.ts";
import { openGates } from "../queries.ts";
import { type AttentionItem, AttentionList, systemItems } from "../ui/attention-list.tsx";
import { Badge } from "../ui/badge.tsx";
import { Empty } from "../ui/empty.tsx";
import { useAttention } from "../ui/use-attention.ts";
import { useNames } from "../ui/use-names.ts";

const maxItems = 8;

/** Everything that waits for an operator or an approver, oldest first. */
export function NeedsAttention() {
  const attention = useAttention();
  const { effects, runs, isReady } = attention;
  const gates = useQuery(openGates());
  const open = gates.data?.gates ?? [];
  const nameOf = useNames([...effects, ...open].map(({ run }) => run));
  const items: readonly AttentionItem[] = [
    ...systemItems(attention),
    ...effects.map(({ run, pos, sub, name, status, reason, changedAt }) => ({
      ...{ key: `effect ${run} ${pos} ${sub}`, at: changedAt, to: "/attention", subject: nameOf(run) },
      badge: <Badge status={status} />,
      text: `${name ?? "compensation"} · ${describeReason(reason)}`,
    })),
    ...open.map(({ run, pos, name, payload, openedAt }) => ({
      ...{ key: `gate ${run} ${pos}`, at: openedAt, to: "/gates", subject: nameOf(run) },
      badge: <Badge status="OPEN" label="gate" />,
      text: `${name} · ${brief(payload, 80)}`,
    })),
    ...runs.map(({ id, journal, workflow, createdAt }) => ({
      ...{ key: `run ${journal}`, at: createdAt, to: "/attention", subject: id },
      badge: <Badge status="STUCK" />,
      text: `${workflow} · cannot continue without an operator`,
    })),
  ].toSorted((a, b) => a.at - b.at);
  return (
    <section className="card" aria-labelledby="attention">
      <h2 id="attention">Needs attention</h2>
      {isReady && gates.data !== undefined && items.length === 0 && (
        <Empty title="Nothing needs attention">
          Effects in doubt, stuck or hung runs, open gates, sinks that do not receive events, and unserved workflows and
          effects appear here.
        </Empty>
      )}
      <AttentionList items={items.slice(0, maxItems)} />
      {items.length > maxItems && <p className="muted small">and {items.length - maxItems} more</p>}
    </section>
  );
}
