import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { TurnCall, TurnGate } from "../api.ts";
import { describeReason, plural } from "../format.ts";
import * as queries from "../queries.ts";
import { Badge } from "../ui/badge.tsx";
import { GateAnswer } from "../ui/gate-card.tsx";
import { Json } from "../ui/json.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";

/** A tool call inside its turn: arguments, approval, the effect and its outcome, sub-agents. */
export function CallCard({
  run,
  call,
  children,
}: {
  readonly run: string;
  readonly call: TurnCall;
  /** The sub-agents of the call. */
  readonly children?: ReactNode;
}) {
  const { id, name, input, effect, approval, output } = call;
  return (
    <section className="call-card" aria-label={`Tool call ${name} ${id}`}>
      <header>
        <strong>{name}</strong> <span className="mono muted small">{id}</span>
        {effect !== undefined && <Badge status={effect.status} />}
        {effect === undefined && approval?.approved === false && <Badge status="WITHDRAWN" label="denied" />}
      </header>
      <Json value={input ?? null} label={`Arguments of ${name} ${id}`} />
      {approval !== undefined && <GateLine run={run} gate={approval} />}
      {effect !== undefined && <EffectLine run={run} effect={effect} />}
      {output !== undefined && (
        <details>
          <summary className="muted small">What the model read</summary>
          <Json value={output ?? null} label={`Result of ${name} ${id}`} />
        </details>
      )}
      {children}
    </section>
  );
}

function EffectLine({ run, effect }: { readonly run: string; readonly effect: NonNullable<TurnCall["effect"]> }) {
  const { name, status, reason, attempts, token, businessKey, error } = effect;
  const why = status === "CONFIRMED" ? "" : describeReason(reason);
  return (
    <p className="small">
      <Link to="/runs/$id" params={{ id: run }} search={{ tab: "effects" }}>
        Effect {name}
      </Link>
      {businessKey !== undefined && <span className="mono"> {businessKey}</span>}, {plural(attempts, "attempt")}
      {token !== undefined && `, token ${token}`}
      {why !== "" && `, ${why}`}
      {error !== undefined && <span className="bad-text block">{error}</span>}
    </p>
  );
}

/** An approval or another gate. An open one is answered here, with the fingerprint that it is bound to. */
export function GateLine({ run, gate }: { readonly run: string; readonly gate: TurnGate }) {
  const { name, status, approved, by, resolvedAt, binds } = gate;
  const rows = useQuery({ ...queries.runGates(run), enabled: status === "OPEN" }).data?.gates ?? [];
  const row = rows.find(({ pos }) => pos === gate.pos);
  const answer = approved === undefined ? status : approved ? "RECEIVED" : "WITHDRAWN";
  const label = approved === undefined ? undefined : approved ? "approved" : "denied";
  return (
    <div className="gate-line">
      <p className="small">
        <Badge status={answer} {...(label === undefined ? {} : { label })} /> {name}
        {by !== undefined && ` by ${by}`}
        {resolvedAt !== undefined && (
          <>
            , <TimeAgo at={resolvedAt} />
          </>
        )}
        {binds !== undefined && (
          <span title={binds}>
            , bound to <span className="mono">{binds.slice(0, 16)}…</span>
          </span>
        )}
      </p>
      {status === "OPEN" && row !== undefined && <GateAnswer gate={row} run={run} />}
    </div>
  );
}
