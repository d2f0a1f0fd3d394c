import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call, type Lease } from "../api.ts";
import { describeStart, formatDuration, parseJson } from "../format.ts";
import { leases as leasesQuery, leaseTerms } from "../queries.ts";
import { RunTakeover } from "../run/run-takeover.tsx";
import { usePermissions } from "../session.tsx";
import { Badge } from "../ui/badge.tsx";
import { ConfirmAction } from "../ui/confirm-action.tsx";
import { Empty } from "../ui/empty.tsx";
import { Facts } from "../ui/facts.tsx";
import { Json } from "../ui/json.tsx";
import { Meter } from "../ui/meter.tsx";
import { Modal } from "../ui/modal.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { RunLink } from "../ui/run-link.tsx";
import { Screen } from "../ui/screen.tsx";
import { ShardTable, shardOfLease } from "../ui/shard-table.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { TermTable } from "../ui/term-table.tsx";
import { useNames } from "../ui/use-names.ts";
import { standbysOf, useProcesses } from "../ui/use-processes.ts";

const kinds: Readonly<Record<string, string>> = { run: "run", item: "item", name: "singleton", store: "store" };
/** Without a maxStall of its own, a lease without progress for this many TTLs counts as stalled. */
const stallTtls = 3;

const stallLimit = ({ maxStallMs, ttlMs }: Lease): number => maxStallMs ?? stallTtls * ttlMs;
const isStalled = (lease: Lease): boolean => lease.state === "HELD" && lease.progressAgoMs > stallLimit(lease);
const isHighlighted = (lease: Lease): boolean =>
  isStalled(lease) || lease.state === "EXPIRED" || lease.state === "DOOMED";
/** "shard 3 of 16 of sweep": a shard and the fan-out of a sink are singletons, too. */
function kindOf(lease: Lease): string | undefined {
  const shard = shardOfLease(lease);
  if (shard !== undefined) return `shard ${shard.index} of ${shard.of} of ${shard.singleton}`;
  return lease.reactor === "sink" ? "fan-out of a sink" : kinds[lease.kind];
}
const isHeld = (lease: Lease): boolean => lease.state !== "FREE";
const stateOf = (lease: Lease): string => (lease.paused ? "PAUSED" : isStalled(lease) ? "STALLED" : lease.state);

export function LeasesScreen() {
  const [includeFree, setIncludeFree] = useState(false);
  const [chosen, setChosen] = useState<number>();
  const leases = useQuery({ ...leasesQuery(includeFree), refetchInterval: 1_000 });
  const processes = useProcesses();
  const standbys = ({ name, owner }: Lease): string => standbysOf(processes, name, owner).join(", ");
  const found = leases.data?.leases ?? [];
  const open = found.find(({ journal }) => journal === chosen);
  const nameOf = useNames(found.filter(({ kind }) => kind === "item").map(({ run }) => run));
  const titleOf = ({ name, run, journal }: Lease): string =>
    name ?? (nameOf(run) === undefined ? `journal ${journal}` : `effect of ${nameOf(run)}`);
  return (
    <Screen
      title="Leases"
      about="The current holder of each run, item and singleton. A holder that renews without progress is highlighted."
      actions={
        <label className="check">
          <input type="checkbox" checked={includeFree} onChange={(event) => setIncludeFree(event.target.checked)} />
          include free leases
        </label>
      }
    >
      <QueryView of={leases}>
        {({ leases: rows }) =>
          rows.length === 0 ? (
            <Empty title="No leases held">
              A process holds a lease while it drives a run, settles an effect or runs a singleton.
            </Empty>
          ) : (
            <>
              <ShardTable leases={rows} />
              <LeaseTable
                title="Singletons"
                rows={rows.filter(({ kind }) => kind === "name")}
                {...{ titleOf, standbys, onOpen: setChosen }}
              />
              <LeaseTable
                title="Runs and items"
                rows={rows.filter(({ kind }) => kind !== "name")}
                {...{ titleOf, onOpen: setChosen }}
              />
            </>
          )
        }
      </QueryView>
      {open !== undefined && (
        <LeaseDrawer
          lease={open}
          title={titleOf(open)}
          standbys={standbys(open)}
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
  /** Only singletons have standbys. */
  readonly standbys?: (lease: Lease) => string;
  readonly onOpen: (journal: number) => void;
}) {
  if (rows.length === 0) return null;
  const columns: readonly Column<Lease>[] = [
    { name: "State", cell: (lease) => <Badge status={stateOf(lease)} /> },
    {
      name: "Lease",
      cell: (lease) => (
        <>
          <button type="button" className="link mono" onClick={() => onOpen(lease.journal)} data-row>
            {titleOf(lease)}
          </button>
          <span className="muted small block">{kindOf(lease)}</span>
        </>
      ),
    },
    {
      name: "Holder",
      cell: (lease) => (
        <>
          {isHeld(lease) ? lease.label : <span className="muted">none</span>}
          <span className="muted small block">
            {isHeld(lease) ? `${lease.reactor} · ` : ""}token {lease.token}
          </span>
        </>
      ),
    },
    ...(standbys === undefined
      ? []
      : [{ name: "Standbys", cell: (lease: Lease) => standbys(lease) || <span className="muted">none</span> }]),
    { name: "Time left", cell: (lease) => isHeld(lease) && <TimeLeft lease={lease} /> },
    { name: "Last progress", cell: (lease) => isHeld(lease) && <Progress lease={lease} /> },
    { name: "Held for", className: "when", cell: (lease) => (isHeld(lease) ? formatDuration(lease.heldMs) : "") },
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
      <span className="muted small block">{remainingMs === 0 ? "expired" : formatDuration(remainingMs)}</span>
    </>
  );
}

function Progress({ lease }: { readonly lease: Lease }) {
  const stalled = isStalled(lease);
  const { progress, progressAgoMs, progressNote } = lease;
  return (
    <>
      <Meter share={progressAgoMs / stallLimit(lease)} tone={stalled ? "bad" : "idle"} label="since progress" />
      <span className={stalled ? "bad-text small block" : "muted small block"}>
        {progress === 0 ? "none for " : ""}
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
  const { name, kind, reason, renewals, longestGapMs, progressNote, ttlMs, checkpoint } = lease;
  const terms = useQuery(leaseTerms(lease));
  return (
    <Modal side title={title} onClose={onClose}>
      <Facts
        of={[
          ["State", <Badge key="state" status={stateOf(lease)} />],
          ...(kind === "run" && name !== null ? [["Run", <RunLink key="run" id={name} />] as const] : []),
          ["Holder", isHeld(lease) ? `${lease.label} (${lease.reactor})` : "none"],
          ...(kind === "name" ? [["Standbys", standbys || "none"] as const] : []),
          ["Token", lease.token],
          ["TTL", formatDuration(ttlMs)],
          ["Started", reason === null ? "" : describeStart(reason)],
          ["Renewals", `${renewals}, longest gap ${formatDuration(longestGapMs)}`],
          ...(progressNote === null ? [] : [["Progress note", progressNote] as const]),
        ]}
      />
      {checkpoint !== undefined && (
        <>
          <h3>Checkpoint</h3>
          <Json value={parseJson(checkpoint)} label="Checkpoint" />
        </>
      )}
      {operate && kind === "name" && <SingletonActions lease={lease} />}
      {operate && kind === "run" && name !== null && isHeld(lease) && (
        <div className="actions">
          <RunTakeover id={name} owner={lease.label} />
        </div>
      )}
      {kind === "item" && (
        <p className="muted">
          An item cannot be taken over. Resolve its effect instead: on Needs attention, or on its run.
        </p>
      )}
      {terms.data !== undefined && (
        <>
          <h3>Term history</h3>
          <TermTable terms={terms.data.terms} />
        </>
      )}
    </Modal>
  );
}

function SingletonActions({ lease: { name, paused } }: { readonly lease: Lease }) {
  const options = (reason: string) => ({ params: { name: name ?? "" }, body: { reason } });
  return (
    <div className="actions">
      <ConfirmAction
        label="Take over"
        title={`Take over ${name}`}
        danger
        run={({ reason }) => call("leases.takeover", options(reason))}
      >
        <p>The current holder is fenced immediately; its writes will be rejected. A standby acquires the lease.</p>
      </ConfirmAction>
      {paused ? (
        <ConfirmAction
          label="Resume"
          title={`Resume ${name}`}
          primary
          run={({ reason }) => call("leases.resume", options(reason))}
        >
          <p>Processes may acquire the lease again.</p>
        </ConfirmAction>
      ) : (
        <ConfirmAction
          label="Pause"
          title={`Pause ${name}`}
          run={({ reason }) => call("leases.pause", options(reason))}
        >
          <p>The current holder is fenced immediately. No process can acquire the lease until it is resumed.</p>
        </ConfirmAction>
      )}
    </div>
  );
}
