import { call, type Gate } from "../api.ts";
import { formatDuration } from "../format.ts";
import { useIdentity, usePermissions } from "../session.tsx";
import { Badge } from "./badge.tsx";
import { ConfirmAction } from "./confirm-action.tsx";
import { Facts } from "./facts.tsx";
import { Json } from "./json.tsx";
import { RunLink } from "./run-link.tsx";
import { useNow } from "./use-now.ts";

/** A decision that a run waits for. What is sent is bound to what this card shows: a stale card opens nothing. */
export function GateCard({ gate, run }: { readonly gate: Gate; readonly run: string | undefined }) {
  const { start } = usePermissions();
  const now = useNow();
  const { name, pos, payload, binds, openedAt } = gate;
  const { role, name: me } = useIdentity();
  const approvers = gate.approvers as Approvers | null;
  const closed = approvers === null ? undefined : whyClosed(approvers, role, me);
  const send = async (value: unknown, reason: string, key: string): Promise<void> => {
    const { gates } = await call("gates.list", { query: { run: run ?? "", open: true } });
    const still = gates.find((one) => one.pos === pos && one.binds === binds);
    if (still === undefined) throw new Error("This gate is no longer open: somebody was faster, or its time ran out.");
    const given = typeof value === "object" && value !== null && !Array.isArray(value);
    await call("runs.signal", {
      params: { id: run ?? "" },
      body: {
        name,
        value: given ? { note: reason, ...value } : value,
        key: `page-${key}`,
        ...(binds === null ? {} : { binds }),
      },
    });
  };
  return (
    <article className="card gate-card" aria-label={`Gate ${name} of ${run ?? "a run"}`}>
      <header>
        <Badge status="OPEN" label="waits" />
        <h2>{name}</h2>
        <span className="muted small">for {formatDuration(now - openedAt)}</span>
      </header>
      <Facts
        of={[
          ["Run", run === undefined ? "…" : <RunLink key="run" id={run} />],
          [
            "Binds",
            binds === null ? (
              "no act: any signal of this name opens it"
            ) : (
              <span key="binds" title={binds}>
                exactly one act, with the fingerprint <span className="mono">{binds.slice(0, 16)}…</span>
              </span>
            ),
          ],
          ["Approvers", approvers === null ? "whoever may send signals" : wordsOf(approvers)],
        ]}
      />
      {payload !== null && <Json value={payload} label="What it shows" />}
      {start && closed !== undefined && (
        <p className="muted small">
          <button type="button" disabled>
            Approve
          </button>{" "}
          {closed}
        </p>
      )}
      {start && closed === undefined && run !== undefined && (
        <footer className="actions">
          <ConfirmAction
            label="Approve"
            title={`Approve ${name}`}
            primary
            value={{ label: "What the run is told, as JSON", initial: '{"approved": true}' }}
            run={({ reason, value, key }) => send(value, reason, key)}
          />
          <ConfirmAction
            label="Reject"
            title={`Reject ${name}`}
            danger
            value={{ label: "What the run is told, as JSON", initial: '{"approved": false}' }}
            run={({ reason, value, key }) => send(value, reason, key)}
          />
        </footer>
      )}
    </article>
  );
}

/** As the gate's definition has it; the server decides, this page only does not offer what it would refuse. */
interface Approvers {
  readonly role?: string;
  readonly tokens?: readonly string[];
  readonly by?: readonly string[];
  readonly not?: "starter";
}

function wordsOf({ role, tokens, by, not }: Approvers): string {
  const named = [...(by ?? []), ...(tokens ?? []).map((id) => `token ${id}`)];
  const parts = [
    ...(role === undefined ? [] : [`the role ${role}`]),
    ...(named.length === 0 ? [] : [named.join(" or ")]),
    ...(not === undefined ? [] : ["not who started the run"]),
  ];
  return parts.join(", ");
}

function whyClosed({ role, tokens, by }: Approvers, mine: string, me: string): string | undefined {
  if (role !== undefined && mine !== role && mine !== "admin" && role !== "starter" && role !== "reader") {
    return `It needs the role ${role}; you have ${mine}.`;
  }
  if (by !== undefined && tokens === undefined && !by.includes(me)) return `It is for ${by.join(" or ")}.`;
  return undefined;
}
