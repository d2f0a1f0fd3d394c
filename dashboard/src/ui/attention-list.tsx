import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { formatDuration, plural } from "../format.ts";
import { needLabel, needStatus, needText } from "../sink/sink-text.ts";
import { Badge } from "./badge.tsx";
import { TimeAgo } from "./time-ago.tsx";
import type { useAttention } from "./use-attention.ts";

export interface AttentionItem {
  readonly key: string;
  readonly at: number;
  /** The screen where an operator deals with it. */
  readonly to: string;
  readonly badge: ReactNode;
  readonly text: string;
  /** Name of the run, workflow or effect; undefined until it is known. */
  readonly subject: string | undefined;
}

export function AttentionList({ items }: { readonly items: readonly AttentionItem[] }) {
  return (
    <ul className="lines attention">
      {items.map(({ key, to, badge, text, subject, at }) => (
        <li key={key}>
          <Link to={to} className="line" data-row>
            {badge}
            <span className="line-text">
              <span className="whole">{text}</span>
              <span className="muted mono small">{subject ?? "…"}</span>
            </span>
            <span className="muted small">
              <TimeAgo at={at} />
            </span>
          </Link>
        </li>
      ))}
    </ul>
  );
}

/** Problems that are fixed elsewhere than on a card: hung runs, cycles of queues, sinks, unserved workflows, effects and queues. */
export function systemItems({
  now,
  hung,
  unserved,
  unservedEffects,
  unservedQueues,
  queueCycles,
  sinks,
}: Omit<ReturnType<typeof useAttention>, "effects" | "runs" | "count" | "isReady">): readonly AttentionItem[] {
  const didYouMean = (name: string | undefined): string => (name === undefined ? "" : `; did you mean ${name}?`);
  return [
    ...unserved.map(({ workflow, build, runs, suggestion }) => ({
      ...{ key: `workflow ${workflow} ${build ?? ""}`, at: now, to: "/runs", subject: workflow },
      badge: <Badge status="STALLED" label="unserved" />,
      text:
        build === undefined
          ? `${plural(runs, "run")} waiting: no process serves this workflow${didYouMean(suggestion)}`
          : `${plural(runs, "run")} waiting: no process of build ${build} is running; start one, or move the runs`,
    })),
    ...unservedEffects.map(({ effect, items, suggestion }) => ({
      ...{ key: `effect ${effect}`, at: now, to: "/effects", subject: effect },
      badge: <Badge status="STALLED" label="unserved" />,
      text: `${plural(items, "call")} waiting: no process serves this effect${didYouMean(suggestion)}`,
    })),
    ...unservedQueues.map(({ queue, runs, suggestion }) => ({
      ...{ key: `queue ${queue}`, at: now, to: `/queues/${encodeURIComponent(queue)}`, subject: queue },
      badge: <Badge status="STALLED" label="unserved" />,
      text: `${plural(runs, "run")} waiting: no process serves this queue${didYouMean(suggestion)}`,
    })),
    ...queueCycles.map(({ steps }) => ({
      ...{ key: `cycle ${steps[0]!.run}`, at: now, to: `/runs/${encodeURIComponent(steps[0]!.holder)}` },
      subject: steps.map(({ holder }) => holder).join(", "),
      badge: <Badge status="STUCK" label="cycle" />,
      text: `runs wait for slots of ${steps.map(({ queue }) => queue).join(", ")} that they keep from each other: cancel one`,
    })),
    ...sinks.map((need) => ({
      ...{ key: `sink ${need.sink}`, to: `/sinks/${encodeURIComponent(need.sink)}`, subject: `sink ${need.sink}` },
      at: now - need.lagMs,
      badge: <Badge status={needStatus(need)} label={needLabel(need)} />,
      text: needText(need),
    })),
    ...hung.map(({ run, forMs, owner }) => ({
      ...{ key: `hung ${run}`, at: now - forMs, to: `/runs/${encodeURIComponent(run)}`, subject: run },
      badge: <Badge status="STALLED" label="may be hung" />,
      text: `no record for ${formatDuration(forMs)}${owner === null ? "" : `, held by ${owner}`}`,
    })),
  ];
}
