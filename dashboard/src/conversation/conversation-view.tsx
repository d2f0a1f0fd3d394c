import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import type { ConversationPage, Run, Turn, TurnChild } from "../api.ts";
import { formatNumber, formatUsd, plural } from "../format.ts";
import * as queries from "../queries.ts";
import { useStreamParts } from "../run/stream-parts.ts";
import { Badge } from "../ui/badge.tsx";
import { BudgetBar } from "../ui/budget-bar.tsx";
import { Empty } from "../ui/empty.tsx";
import { LoadMore } from "../ui/load-more.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { RunLink } from "../ui/run-link.tsx";
import { conversationPages } from "./conversation-queries.ts";
import { TokenBars } from "./token-bars.tsx";
import { TurnCard } from "./turn-card.tsx";

type OfRun = Pick<Run, "id" | "endedAt">;

/** The conversation of a run with its models, from the journal; an open turn is followed in the run's stream. */
export function ConversationView({ run, inner = false }: { readonly run: OfRun; readonly inner?: boolean }) {
  const pages = useInfiniteQuery(conversationPages(run));
  return (
    <QueryView of={{ data: pages.data?.pages, error: pages.error }}>
      {(loaded) => {
        const turns = loaded.flatMap((page) => page.turns);
        if (turns.length === 0) return <Empty title="No conversation">This run has called no model.</Empty>;
        return (
          <section className="conversation" aria-label={`Conversation of ${run.id}`}>
            {!inner && <ConversationHead run={run} page={loaded.at(-1)!} turns={turns} />}
            <Turns run={run} turns={turns} hidden={loaded[0]!.hidden === true} />
            <LoadMore of={pages} />
          </section>
        );
      }}
    </QueryView>
  );
}

function ConversationHead({
  run,
  page,
  turns,
}: {
  readonly run: OfRun;
  readonly page: ConversationPage;
  readonly turns: readonly Turn[];
}) {
  const { sums, hidden, cut } = page;
  const { input, output, cached, usd, lost, presumed, models } = sums;
  const budgets = useQuery(queries.runBudgets(run.id)).data?.budgets ?? [];
  const presumedText = [
    presumed.tokens === undefined ? undefined : `${formatNumber(presumed.tokens)} tokens`,
    presumed.usd === undefined ? undefined : formatUsd(presumed.usd),
  ].filter((text) => text !== undefined);
  return (
    <section className="card" aria-label="Sums of the conversation">
      <header>
        <h2>
          {plural(sums.turns, "turn")}, {plural(sums.attempts, "call")}
        </h2>
        <span className="muted">{models.join(", ")}</span>
        <CopyJson of={{ run: page.run, sums, turns }} />
      </header>
      <p>
        {formatNumber(input)} tokens in{cached > 0 && ` (${formatNumber(cached)} cached)`}, {formatNumber(output)} out
        {usd !== undefined && `, ${formatUsd(usd)}`}
      </p>
      {lost > 0 && (
        <p className="mark unknown">
          {plural(lost, "call")} lost in a crash and asked again, presumed cost {presumedText.join(", ")}
        </p>
      )}
      {hidden === true && <p className="muted">The content is hidden from your role.</p>}
      {cut === true && (
        <p className="muted">The journal is longer than what is read of one: later turns are missing.</p>
      )}
      {budgets
        .filter(({ unit }) => unit === "tokens" || unit === "usd")
        .map(({ unit, cap, spent, reserved }) => (
          <BudgetBar key={unit} {...{ unit, cap, spent, reserved }} />
        ))}
      <TokenBars bars={sums.bars} />
    </section>
  );
}

/** The clipboard exists only where the page is served securely, or from this machine. */
function CopyJson({ of }: { readonly of: unknown }) {
  const [copied, setCopied] = useState(false);
  if (navigator.clipboard === undefined) return null;
  return (
    <button
      type="button"
      onClick={() => void navigator.clipboard.writeText(JSON.stringify(of, null, 2)).then(() => setCopied(true))}
    >
      {copied ? "Copied" : "Copy as JSON"}
    </button>
  );
}

function Turns({
  run,
  turns,
  hidden,
}: {
  readonly run: OfRun;
  readonly turns: readonly Turn[];
  /** The stream is content, too. */
  readonly hidden: boolean;
}) {
  const answered = new Set(turns.flatMap(({ calls }) => calls.map(({ id }) => id)));
  const isOpen = turns.some(({ open }) => open === true) && run.endedAt === null && !hidden;
  const card = (turn: Turn, live: ReadonlyMap<number, string>): ReactNode => {
    const own = (call: string): readonly Turn[] =>
      turns.filter(({ under }) => under?.pos === turn.pos && under.call === call);
    const under = (call: string): ReactNode =>
      own(call).length > 0 && (
        <details className="sub-agent" open>
          <summary>Sub-agent {own(call)[0]!.agent}</summary>
          {own(call).map((inner) => card(inner, live))}
        </details>
      );
    const number = turns.indexOf(turn) + 1;
    return (
      <TurnCard
        key={turn.pos}
        run={run.id}
        {...{ turn, number, answered, under }}
        live={live.get(turn.pos)}
        childView={(child) => <ChildView key={child.pos} child={child} />}
      />
    );
  };
  const known = new Set(turns.map(({ pos }) => pos));
  const top = turns.filter(({ under }) => under === undefined || !known.has(under.pos));
  return isOpen ? (
    <LiveParts run={run}>{(live) => top.map((turn) => card(turn, live))}</LiveParts>
  ) : (
    top.map((turn) => card(turn, none))
  );
}

/** A sub-agent with a run of its own. Its conversation is read when it is unfolded. */
function ChildView({ child }: { readonly child: TurnChild }) {
  const [open, setOpen] = useState(false);
  const { run, workflow, status = "RUNNING" } = child;
  const endedAt = openStatuses.has(status) ? null : 0;
  return (
    <details className="sub-agent" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        Sub-agent {workflow} <Badge status={status} />
      </summary>
      <p className="small">
        Run <RunLink id={run} />
      </p>
      {open && <ConversationView run={{ id: run, endedAt }} inner />}
    </details>
  );
}

const openStatuses: ReadonlySet<string> = new Set(["QUEUED", "RUNNABLE", "RUNNING", "WAITING", "STUCK"]);

const none: ReadonlyMap<number, string> = new Map();
/** The stream of `decision.emit`. */
const partsName = "parts";
/** Enough for the open turn; earlier ones are in the journal. */
const latestChunks = 1_000;

/** Follows what open turns emit. It starts when the stream is there. */
function LiveParts({
  run,
  children,
}: {
  readonly run: OfRun;
  readonly children: (live: ReadonlyMap<number, string>) => ReactNode;
}) {
  const streams = useQuery(queries.runStreams(run)).data?.streams ?? [];
  const stream = streams.find(({ name }) => name === partsName);
  if (stream === undefined) return <>{children(none)}</>;
  return (
    <Following run={run.id} next={stream.next}>
      {children}
    </Following>
  );
}

function Following({
  run,
  next,
  children,
}: {
  readonly run: string;
  readonly next: number;
  readonly children: (live: ReadonlyMap<number, string>) => ReactNode;
}) {
  const [from] = useState(Math.max(0, next - latestChunks)); // the stream stays open while the list is read again
  return <>{children(useStreamParts(run, partsName, from))}</>;
}
