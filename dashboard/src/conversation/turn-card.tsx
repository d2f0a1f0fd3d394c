import { type ReactNode, useState } from "react";
import type { Turn, TurnChild } from "../api.ts";
import { formatDuration, formatNumber, formatUsd, plural } from "../format.ts";
import { ForkDialog } from "../run/fork-dialog.tsx";
import { usePermissions } from "../session.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";
import { CallCard, GateLine } from "./call-card.tsx";
import { MessageBubble, messageOf, messagesOf } from "./message-bubble.tsx";

export interface TurnCardProps {
  readonly run: string;
  readonly turn: Turn;
  readonly number: number;
  /** Ids of calls that have a card. */
  readonly answered: ReadonlySet<string>;
  /** What an open turn has emitted so far. */
  readonly live?: string | undefined;
  /** The turns of the sub-agent of a call. */
  readonly under: (call: string) => ReactNode;
  /** A sub-agent with a run of its own. */
  readonly childView: (child: TurnChild) => ReactNode;
}

/** One model call: what was new in its request, its answer, the tools that it calls, and what it cost. */
export function TurnCard({ run, turn, number, answered, live, under, childView }: TurnCardProps) {
  const { agent, open, error, failures, calls, gates, children } = turn;
  const answer = messageOf(turn.answer);
  return (
    <article className="turn" aria-label={`Turn ${number}${agent === "" ? "" : `, ${agent}`}`}>
      <TurnHead {...{ run, turn, number }} />
      {messagesOf(turn.messages).map((message, k) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: messages of a recorded turn never change
        <MessageBubble key={k} message={message} answered={answered} />
      ))}
      {failures.length > 0 && (
        <ul className="small muted">
          {failures.map((failure) => (
            <li key={failure.attempt}>
              Attempt {failure.attempt} failed: {failure.error}
            </li>
          ))}
        </ul>
      )}
      {answer !== undefined && <MessageBubble message={answer} answered={answered} />}
      {open === true && (
        <div className="bubble assistant" aria-live="polite">
          <span className="bubble-role">Model</span>
          {live !== undefined && live !== "" ? <p className="said">{live}</p> : <p className="muted">is answering…</p>}
        </div>
      )}
      {error !== undefined && <p className="bad-text">{error}</p>}
      {calls.map((call) => (
        <CallCard key={call.id} {...{ run, call }}>
          {call.children?.map(childView)}
          {under(call.id)}
        </CallCard>
      ))}
      {gates?.map((gate) => (
        <GateLine key={gate.pos} {...{ run, gate }} />
      ))}
      {children?.map(childView)}
    </article>
  );
}

function TurnHead({ run, turn, number }: { readonly run: string; readonly turn: Turn; readonly number: number }) {
  const { operate } = usePermissions();
  const [forking, setForking] = useState(false);
  const { agent, model, at, usage, latencyMs, attempts, open } = turn;
  const facts = [
    model,
    usage && `${formatNumber(usage.input)} in, ${formatNumber(usage.output)} out`,
    usage?.cached !== undefined && `${formatNumber(usage.cached)} cached`,
    usage?.reasoning !== undefined && `${formatNumber(usage.reasoning)} reasoning`,
    usage?.usd !== undefined && formatUsd(usage.usd),
    latencyMs !== undefined && formatDuration(latencyMs),
    attempts > 1 && plural(attempts, "attempt"),
    turn.owner,
  ].filter((fact) => typeof fact === "string");
  return (
    <header>
      <h3>
        {number} {agent}
      </h3>
      <span className="muted small">
        {facts.join(" · ")} · <TimeAgo at={at} />
      </span>
      <TurnMarks turn={turn} />
      {operate && open !== true && (
        <button type="button" className="quiet" onClick={() => setForking(true)}>
          Fork from this turn
        </button>
      )}
      {forking && (
        <ForkDialog id={run} at={forkPosition(turn)} message={lastUserText(turn)} onClose={() => setForking(false)} />
      )}
    </header>
  );
}

function TurnMarks({ turn }: { readonly turn: Turn }) {
  const { lost, presumed, changed, kept, replayedBy } = turn;
  const last = replayedBy.at(-1);
  return (
    <>
      {lost > 0 && (
        <span className="mark unknown">asked again after a crash, presumed cost {amounts(presumed ?? {})}</span>
      )}
      {changed === true && (
        <span
          className="mark wait"
          title="Code that replayed this turn sends another request now. The recorded answer stays."
        >
          request changed since
        </span>
      )}
      {kept === true && <span className="mark idle">kept from the source run</span>}
      {last !== undefined && (
        <span className="mark replayed" title={replayedBy.join(", ")}>
          replayed by {last}
        </span>
      )}
    </>
  );
}

const amounts = (units: Readonly<Record<string, number>>): string =>
  Object.entries(units)
    .filter(([unit]) => unit !== "calls")
    .map(([unit, amount]) => (unit === "usd" ? formatUsd(amount) : `${formatNumber(amount)} ${unit}`))
    .join(", ");

/** The reservation of the call's budget comes just before the call. */
const forkPosition = ({ pos, startedAt }: Turn): number => (startedAt === undefined ? pos : pos - 1);

function lastUserText({ messages }: Turn): string | undefined {
  const users = messagesOf(messages).filter(({ role }) => role === "user");
  return users.at(-1)?.parts.findLast(({ type, text }) => type === "text" && text !== "")?.text;
}
