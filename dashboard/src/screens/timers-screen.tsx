import { useQuery } from "@tanstack/react-query";
import type { SchedulePlan } from "../../../src/model/schedule.ts";
import { formatDuration, formatTime, parseJson, unwrap } from "../format.ts";
import * as queries from "../queries.ts";
import { Badge } from "../ui/badge.tsx";
import { Empty } from "../ui/empty.tsx";
import { RunLink } from "../ui/run-link.tsx";
import { Screen } from "../ui/screen.tsx";
import { QueryTable } from "../ui/table.tsx";
import { useNames } from "../ui/use-names.ts";
import { useNow } from "../ui/use-now.ts";

export function TimersScreen() {
  return (
    <Screen title="Timers and schedules" about="Sleeps, timeouts and retries of runs, and schedules that start runs.">
      <Timers />
      <Schedules />
    </Screen>
  );
}

const formatDue = (at: number, now: number): string =>
  at <= now ? `overdue by ${formatDuration(now - at)}` : `in ${formatDuration(at - now)}`;

function Timers() {
  const now = useNow();
  const timers = useQuery(queries.timers());
  const nameOf = useNames((timers.data?.timers ?? []).map(({ run }) => run));
  return (
    <section aria-labelledby="timers">
      <h2 id="timers">Timers</h2>
      <QueryTable
        of={timers}
        rows={({ timers: rows }) => rows}
        keyOf={({ run, pos, purpose }) => `${run} ${pos} ${purpose}`}
        empty={<Empty title="No timers">Runs that sleep, wait with a timeout or retry appear here.</Empty>}
        columns={[
          { name: "Status", cell: ({ status }) => <Badge status={status} /> },
          { name: "Run", cell: ({ run }) => (nameOf(run) === undefined ? "…" : <RunLink id={nameOf(run)!} />) },
          {
            name: "Purpose",
            cell: ({ purpose, pos }) => (
              <>
                {purpose.replaceAll("_", " ")} <span className="muted small">position {pos}</span>
              </>
            ),
          },
          {
            name: "Due",
            cell: ({ status, dueAt }) => (
              <>
                {status === "SET" ? formatDue(dueAt, now) : ""}
                <span className="muted small block">{formatTime(dueAt)}</span>
              </>
            ),
          },
        ]}
      />
    </section>
  );
}

function Schedules() {
  const now = useNow();
  return (
    <section aria-labelledby="schedules">
      <h2 id="schedules">Schedules</h2>
      <QueryTable
        of={useQuery(queries.schedules())}
        rows={({ schedules: rows }) => rows}
        keyOf={({ id }) => id}
        empty={
          <Empty title="No schedules">
            Create one with <code>app.schedules.create(…)</code>.
          </Empty>
        }
        columns={[
          { name: "Schedule", className: "mono", cell: ({ id }) => id },
          { name: "Workflow", cell: ({ spec }) => planOf(spec).workflow },
          {
            name: "Cron",
            cell: ({ spec }) => (
              <>
                <span className="mono">{planOf(spec).cron}</span>
                <span className="muted small block">{planOf(spec).timeZone}</span>
              </>
            ),
          },
          {
            name: "Next run",
            cell: ({ paused, nextAt }) =>
              paused ? <Badge status="PAUSED" /> : nextAt === null ? "never" : formatDue(nextAt, now),
          },
          {
            name: "Overlap, catch-up",
            cell: ({ spec }) => `${planOf(spec).overlap ?? "…"}, ${planOf(spec).catchUp ?? "…"}`,
          },
          {
            name: "Last run",
            cell: ({ spec }) => {
              const { lastRun = null, lastError } = planOf(spec);
              return (
                <>
                  {lastRun === null ? <span className="muted">none</span> : <RunLink id={lastRun} />}
                  {lastError !== undefined && <span className="bad-text small block">{lastError.message}</span>}
                </>
              );
            },
          },
        ]}
      />
    </section>
  );
}

/** The spec is the codec's text. A newer server may write other fields. */
const planOf = (spec: string): Partial<SchedulePlan> => (unwrap(parseJson(spec)) ?? {}) as Partial<SchedulePlan>;
