import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call, type Lease } from "../api.ts";
import { begunOf, lasting } from "../format.ts";
import { useMay } from "../session.tsx";
import { Badge } from "../ui/badge.tsx";
import { Deed } from "../ui/deed.tsx";
import { Answer, Empty, Facts, Meter, Modal, RunLink, Screen } from "../ui/parts.tsx";
import { Terms } from "../ui/terms.tsx";

const kinds: Readonly<Record<string, string>> = { run: "run", item: "act", name: "singleton", store: "store" };
/** Renewals without progress for so many times the lease look like a wedged owner. */
const stallTimes = 3;

const stallLimit = ({ maxStallMs, ttlMs }: Lease): number => maxStallMs ?? stallTimes * ttlMs;
const isStalling = (lease: Lease): boolean => lease.state === "HELD" && lease.progressAgoMs > stallLimit(lease);
const stateOf = (lease: Lease): string => (lease.paused ? "PAUSED" : isStalling(lease) ? "STALLING" : lease.state);

export function Leases() {
  const [all, setAll] = useState(false);
  const [chosen, setChosen] = useState<number>();
  const leases = useQuery({
    queryKey: ["leases", all],
    queryFn: () => call("leases.list", { query: { held: all ? undefined : true, limit: 200 } }),
    refetchInterval: 1_000,
  });
  const lease = leases.data?.leases.find(({ journal }) => journal === chosen);
  return (
    <Screen
      title="Leases"
      about="Who owns what right now. An owner that renews but gets nowhere stands out."
      actions={
        <label className="check">
          <input type="checkbox" checked={all} onChange={(event) => setAll(event.target.checked)} />
          also free ones
        </label>
      }
    >
      <Answer of={leases}>
        {({ leases: rows }) =>
          rows.length === 0 ? (
            <Empty title="Nobody holds anything">
              A lease is held while somebody drives a run, settles an act, or runs a singleton.
            </Empty>
          ) : (
            <div className="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">State</th>
                    <th scope="col">What</th>
                    <th scope="col">Owner</th>
                    <th scope="col">Time left</th>
                    <th scope="col">Last progress</th>
                    <th scope="col">Held</th>
                  </tr>
                </thead>
                <tbody>
                  {rows.map((row) => (
                    <LeaseRow key={row.journal} lease={row} onOpen={() => setChosen(row.journal)} />
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Answer>
      {lease !== undefined && <LeaseDrawer lease={lease} onClose={() => setChosen(undefined)} />}
    </Screen>
  );
}

function LeaseRow({ lease, onOpen }: { readonly lease: Lease; readonly onOpen: () => void }) {
  const { name, journal, kind, label, reactor, token, remainingMs, ttlMs, progressAgoMs, progress, heldMs } = lease;
  const held = lease.state !== "FREE";
  const stalled = isStalling(lease);
  return (
    <tr className={stalled || lease.state === "EXPIRED" ? "loud" : ""}>
      <td>
        <Badge status={stateOf(lease)} />
      </td>
      <td>
        <button type="button" className="link mono" onClick={onOpen} data-row>
          {name ?? `journal ${journal}`}
        </button>
        <span className="muted small block">{kinds[kind]}</span>
      </td>
      <td>
        {held ? label : <span className="muted">nobody</span>}
        <span className="muted small block">{held ? `${reactor} · token ${token}` : `token ${token}`}</span>
      </td>
      <td>
        {held && (
          <>
            <Meter share={remainingMs / ttlMs} tone={remainingMs < ttlMs / 4 ? "bad" : "run"} label="time left" />
            <span className="muted small block">{remainingMs === 0 ? "run out" : lasting(remainingMs)}</span>
          </>
        )}
      </td>
      <td>
        {held && (
          <>
            <Meter share={progressAgoMs / stallLimit(lease)} tone={stalled ? "bad" : "idle"} label="since progress" />
            <span className={stalled ? "bad-text small block" : "muted small block"}>
              {progress === 0 ? "none yet, " : ""}
              {lasting(progressAgoMs)} ago
            </span>
          </>
        )}
      </td>
      <td>{held ? lasting(heldMs) : ""}</td>
    </tr>
  );
}

function LeaseDrawer({ lease, onClose }: { readonly lease: Lease; readonly onClose: () => void }) {
  const { operate } = useMay();
  const { name, kind, journal, reason, renewals, longestGapMs, progressNote, ttlMs, paused } = lease;
  const terms = useQuery({
    queryKey: ["terms", journal, lease.token, lease.state],
    queryFn: () =>
      kind === "name"
        ? call("leases.terms", { params: { name: name! } })
        : call("runs.terms", { params: { id: name! } }),
    enabled: name !== null && (kind === "name" || kind === "run"),
  });
  const body = (why: string) => ({ params: { name: name ?? "" }, body: { reason: why } });
  return (
    <Modal side title={name ?? `journal ${journal}`} onClose={onClose}>
      <Facts
        of={[
          ["State", <Badge key="state" status={stateOf(lease)} />],
          ...(kind === "run" && name !== null ? [["Run", <RunLink key="run" id={name} />] as const] : []),
          ["Token", lease.token],
          ["Lease of", lasting(ttlMs)],
          ["Began", reason === null ? "" : begunOf(reason)],
          ["Renewals", `${renewals}, longest gap ${lasting(longestGapMs)}`],
          ...(progressNote === null ? [] : [["Says", progressNote] as const]),
        ]}
      />
      {operate && kind === "name" && (
        <div className="actions">
          <Deed
            label="Take over"
            title={`Take over ${name}`}
            danger
            run={({ reason: why }) => call("leases.takeover", body(why))}
          >
            <p>The owner is fenced at once: nothing it still writes is accepted. Whoever stands by takes the lease.</p>
          </Deed>
          {paused ? (
            <Deed
              label="Resume"
              title={`Resume ${name}`}
              primary
              run={({ reason: why }) => call("leases.resume", body(why))}
            />
          ) : (
            <Deed label="Pause" title={`Pause ${name}`} run={({ reason: why }) => call("leases.pause", body(why))}>
              <p>Nobody may hold it until it is resumed; its owner is fenced at once.</p>
            </Deed>
          )}
        </div>
      )}
      {terms.data !== undefined && (
        <>
          <h3>Terms</h3>
          <Terms terms={terms.data.terms} />
        </>
      )}
    </Modal>
  );
}
