import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call, type Lease } from "../api.ts";
import { describeStart, formatDuration } from "../format.ts";
import { RunTakeover } from "../run/run-takeover.tsx";
import { usePermissions } from "../session.tsx";
import { Badge } from "../ui/badge.tsx";
import { ConfirmAction } from "../ui/confirm-action.tsx";
import { Empty } from "../ui/empty.tsx";
import { Facts } from "../ui/facts.tsx";
import { Meter } from "../ui/meter.tsx";
import { Modal } from "../ui/modal.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { RunLink } from "../ui/run-link.tsx";
import { Screen } from "../ui/screen.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { TermTable } from "../ui/term-table.tsx";
import { useNames } from "../ui/use-names.ts";
import { standbysOf, useProcesses } from "../ui/use-processes.ts";

const kinds: Readonly<Record<string, string>> = { run: "run", item: "act", name: "singleton", store: "store" };
/** Renewals without progress for so many times the lease look like a wedged owner. */
const stallTimes = 3;

const stallLimit = ({ maxStallMs, ttlMs }: Lease): number => maxStallMs ?? stallTimes * ttlMs;
const isStalling = (lease: Lease): boolean => lease.state === "HELD" && lease.progressAgoMs > stallLimit(lease);
const isHighlighted = (lease: Lease): boolean =>
  isStalling(lease) || lease.state === "EXPIRED" || lease.state === "DOOMED";
const isHeld = (lease: Lease): boolean => lease.state !== "FREE";
const stateOf = (lease: Lease): string => (lease.paused ? "PAUSED" : isStalling(lease) ? "STALLING" : lease.state);

export function LeasesScreen() {
  const [all, setAll] = useState(false);
  const [chosen, setChosen] = useState<number>();
  const leases = useQuery({
    queryKey: ["leases", all],
    queryFn: () => call("leases.list", { query: { held: all ? undefined : true, limit: 200 } }),
    refetchInterval: 1_000,
  });
  const processes = useProcesses();
  const standbys = ({ name, owner }: Lease): string => standbysOf(processes, name, owner).join(", ");
  const found = leases.data?.leases ?? [];
  const lease = found.find(({ journal }) => journal === chosen);
  const nameOf = useNames(found.filter(({ kind }) => kind === "item").map(({ run }) => run));
  const titleOf = (one: Lease): string =>
    one.name ?? (nameOf(one.run) === undefined ? `journal ${one.journal}` : `an act of ${nameOf(one.run)}`);
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
      <QueryView of={leases}>
        {({ leases: rows }) =>
          rows.length === 0 ? (
            <Empty title="Nobody holds anything">
              A lease is held while somebody drives a run, settles an act, or runs a singleton.
            </Empty>
          ) : (
            <>
              <LeaseTable
                title="Singletons"
                rows={rows.filter(({ kind }) => kind === "name")}
                {...{ titleOf, standbys, onOpen: setChosen }}
              />
              <LeaseTable
                title="Runs and acts"
                rows={rows.filter(({ kind }) => kind !== "name")}
                {...{ titleOf, onOpen: setChosen }}
              />
            </>
          )
        }
      </QueryView>
      {lease !== undefined && (
        <LeaseDrawer
          lease={lease}
          title={titleOf(lease)}
          standbys={standbys(lease)}
          onClose={() => setChosen(undefined)}
        />
      )}
    </Screen>
  );
}

function LeaseTable({
  title,
  rows,
  titleOf,
  standbys,
  onOpen,
}: {
  readonly title: string;
  readonly rows: readonly Lease[];
  readonly titleOf: (lease: Lease) => string;
  /** Who stands by, where somebody can. */
  readonly standbys?: (lease: Lease) => string;
  readonly onOpen: (journal: number) => void;
}) {
  if (rows.length === 0) return null;
  const columns: readonly Column<Lease>[] = [
    { name: "State", cell: (lease) => <Badge status={stateOf(lease)} /> },
    {
      name: "What",
      cell: (lease) => (
        <>
          <button type="button" className="link mono" onClick={() => onOpen(lease.journal)} data-row>
            {titleOf(lease)}
          </button>
          <span className="muted small block">{kinds[lease.kind]}</span>
        </>
      ),
    },
    {
      name: "Owner",
      cell: (lease) => (
        <>
          {isHeld(lease) ? lease.label : <span className="muted">nobody</span>}
          <span className="muted small block">
            {isHeld(lease) ? `${lease.reactor} · ` : ""}token {lease.token}
          </span>
        </>
      ),
    },
    ...(standbys === undefined
      ? []
      : [{ name: "Standbys", cell: (lease: Lease) => standbys(lease) || <span className="muted">nobody</span> }]),
    { name: "Time left", cell: (lease) => isHeld(lease) && <TimeLeft lease={lease} /> },
    { name: "Last progress", cell: (lease) => isHeld(lease) && <Progress lease={lease} /> },
    { name: "Held", look: "when", cell: (lease) => (isHeld(lease) ? formatDuration(lease.heldMs) : "") },
  ];
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <Table rows={rows} columns={columns} keyOf={({ journal }) => journal} isHighlighted={isHighlighted} />
    </section>
  );
}

function TimeLeft({ lease: { remainingMs, ttlMs } }: { readonly lease: Lease }) {
  return (
    <>
      <Meter share={remainingMs / ttlMs} tone={remainingMs < ttlMs / 4 ? "bad" : "run"} label="time left" />
      <span className="muted small block">{remainingMs === 0 ? "run out" : formatDuration(remainingMs)}</span>
    </>
  );
}

function Progress({ lease }: { readonly lease: Lease }) {
  const stalled = isStalling(lease);
  const { progress, progressAgoMs, progressNote } = lease;
  return (
    <>
      <Meter share={progressAgoMs / stallLimit(lease)} tone={stalled ? "bad" : "idle"} label="since progress" />
      <span className={stalled ? "bad-text small block" : "muted small block"}>
        {progress === 0 ? "none yet, for " : ""}
        {formatDuration(progressAgoMs)}
        {progress === 0 ? "" : " ago"}
        {progressNote === null ? "" : `: ${progressNote}`}
      </span>
    </>
  );
}

function LeaseDrawer({
  lease,
  title,
  standbys,
  onClose,
}: {
  readonly lease: Lease;
  readonly title: string;
  readonly standbys: string;
  readonly onClose: () => void;
}) {
  const { operate } = usePermissions();
  const { name, kind, journal, reason, renewals, longestGapMs, progressNote, ttlMs } = lease;
  const terms = useQuery({
    queryKey: ["terms", journal, lease.token, lease.state],
    queryFn: () =>
      kind === "name"
        ? call("leases.terms", { params: { name: name! } })
        : call("runs.terms", { params: { id: name! } }),
    enabled: name !== null && (kind === "name" || kind === "run"),
  });
  return (
    <Modal side title={title} onClose={onClose}>
      <Facts
        of={[
          ["State", <Badge key="state" status={stateOf(lease)} />],
          ...(kind === "run" && name !== null ? [["Run", <RunLink key="run" id={name} />] as const] : []),
          ["Holder", isHeld(lease) ? `${lease.label} (${lease.reactor})` : "nobody"],
          ...(kind === "name" ? [["Standbys", standbys || "nobody"] as const] : []),
          ["Token", lease.token],
          ["Lease of", formatDuration(ttlMs)],
          ["Began", reason === null ? "" : describeStart(reason)],
          ["Renewals", `${renewals}, longest gap ${formatDuration(longestGapMs)}`],
          ...(progressNote === null ? [] : [["Says", progressNote] as const]),
        ]}
      />
      {operate && kind === "name" && <SingletonActions lease={lease} />}
      {operate && kind === "run" && name !== null && isHeld(lease) && (
        <div className="actions">
          <RunTakeover id={name} owner={lease.label} />
        </div>
      )}
      {kind === "item" && (
        <p className="muted">
          A person takes an act over by settling it: on the screen AttentionScreen, or at its run.
        </p>
      )}
      {terms.data !== undefined && (
        <>
          <h3>Terms</h3>
          <TermTable terms={terms.data.terms} />
        </>
      )}
    </Modal>
  );
}

function SingletonActions({ lease: { name, paused } }: { readonly lease: Lease }) {
  const body = (why: string) => ({ params: { name: name ?? "" }, body: { reason: why } });
  return (
    <div className="actions">
      <ConfirmAction
        label="Take over"
        title={`Take over ${name}`}
        danger
        run={({ reason: why }) => call("leases.takeover", body(why))}
      >
        <p>The owner is fenced at once: nothing it still writes is accepted. Whoever stands by takes the lease.</p>
      </ConfirmAction>
      {paused ? (
        <ConfirmAction
          label="Resume"
          title={`Resume ${name}`}
          primary
          run={({ reason: why }) => call("leases.resume", body(why))}
        />
      ) : (
        <ConfirmAction label="Pause" title={`Pause ${name}`} run={({ reason: why }) => call("leases.pause", body(why))}>
          <p>Nobody may hold it until it is resumed; its owner is fenced at once.</p>
        </ConfirmAction>
      )}
    </div>
  );
}
