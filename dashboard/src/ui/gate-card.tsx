import { useState } from "react";
import type { Gate } from "../api.ts";
import { formatDuration } from "../format.ts";
import { answersOf, GateDialog, type GateDialogProps } from "../gate/gate-dialog.tsx";
import { useIdentity, usePermissions } from "../session.tsx";
import { Badge } from "./badge.tsx";
import { Facts } from "./facts.tsx";
import { Json } from "./json.tsx";
import { RunLink } from "./run-link.tsx";
import { useNow } from "./use-now.ts";
import { useGateSchema } from "./use-processes.ts";

/** An open gate. The signal carries the fingerprint that this card shows, so a stale card resolves nothing. */
export function GateCard({ gate, run }: { readonly gate: Gate; readonly run: string | undefined }) {
  const now = useNow();
  const { name, payload, binds, openedAt, callback } = gate;
  const approvers = gate.approvers as Approvers | null;
  return (
    <article className="card gate-card" aria-label={`Gate ${name} of ${run ?? "a run"}`}>
      <header>
        <Badge status="OPEN" />
        <h2>{name}</h2>
        <span className="muted small">for {formatDuration(now - openedAt)}</span>
      </header>
      <Facts
        of={[
          ["Run", run === undefined ? "…" : <RunLink key="run" id={run} />],
          [
            "Bound to",
            binds === null ? (
              "no effect: any signal with this name resolves it"
            ) : (
              <span key="binds" title={binds}>
                one effect, fingerprint <span className="mono">{binds.slice(0, 16)}…</span>
              </span>
            ),
          ],
          [
            "Approvers",
            callback !== undefined
              ? "none: only the token of this callback opens it"
              : describeApprovers(approvers ?? {}, binds !== null),
          ],
        ]}
      />
      {payload !== null && <Json value={payload} label="Payload" />}
      {run !== undefined && <GateAnswer gate={gate} run={run} />}
    </article>
  );
}

/** Approve and reject, for users who may. */
export function GateAnswer({ gate, run }: { readonly gate: Gate; readonly run: string }) {
  const { start } = usePermissions();
  const identity = useIdentity();
  const approvers = gate.approvers as Approvers | null;
  const refusal = approvers === null ? undefined : refusalFor(approvers, identity);
  if (!start) return null;
  if (refusal === undefined) return gate.callback === undefined ? <GateActions gate={gate} run={run} /> : null;
  return (
    <p className="muted small">
      <button type="button" disabled>
        Approve
      </button>{" "}
      {refusal}
    </p>
  );
}

function GateActions({ gate, run }: { readonly gate: Gate; readonly run: string }) {
  const schema = useGateSchema(gate.name);
  const [answer, setAnswer] = useState<GateDialogProps["answer"]>();
  return (
    <footer className="actions">
      {answersOf(schema).map((name) => (
        <button
          key={name}
          type="button"
          className={name === "Reject" ? "danger" : "primary"}
          onClick={() => setAnswer(name)}
        >
          {name}
        </button>
      ))}
      {answer !== undefined && <GateDialog {...{ gate, run, schema, answer }} onClose={() => setAnswer(undefined)} />}
    </footer>
  );
}

/** As in the gate's definition. The server decides; the card only does not offer what the server would reject. */
interface Approvers {
  readonly role?: string;
  readonly tokens?: readonly string[];
  readonly by?: readonly string[];
  readonly not?: "starter";
  readonly self?: true;
  readonly agents?: true;
}

function describeApprovers({ role, tokens, by, not, self, agents }: Approvers, bound: boolean): string {
  const named = [...(by ?? []), ...(tokens ?? []).map((id) => `token ${id}`)];
  const parts = [
    ...(role === undefined ? [] : [`role ${role}`]),
    ...(named.length === 0 ? [] : [named.join(" or ")]),
    ...(not === undefined && (!bound || self === true) ? [] : ["not the starter of the run"]),
    ...(agents === undefined ? [] : ["also agents by MCP"]),
  ];
  return parts.length === 0 ? "everyone who may send signals" : parts.join(", ");
}

/** Why this user cannot approve; undefined if they can. */
function refusalFor(
  { role, tokens, by }: Approvers,
  user: { readonly role: string; readonly name: string },
): string | undefined {
  if (role !== undefined && user.role !== role && user.role !== "admin" && role !== "starter" && role !== "reader") {
    return `Requires role ${role}; yours is ${user.role}.`;
  }
  if (by !== undefined && tokens === undefined && !by.includes(user.name))
    return `Only ${by.join(" or ")} may approve.`;
  return undefined;
}
