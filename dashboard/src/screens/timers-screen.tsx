import { useQuery } from "@tanstack/react-query";
import { call } from "../api.ts";
import { brief, formatDuration, formatTime, parseJson } from "../format.ts";
import { Badge } from "../ui/badge.tsx";
import { Empty } from "../ui/empty.tsx";
import { RunLink } from "../ui/run-link.tsx";
import { Screen } from "../ui/screen.tsx";
import { QueryTable } from "../ui/table.tsx";
import { useNames } from "../ui/use-names.ts";
import { useNow } from "../ui/use-now.ts";

export function TimersScreen() {
  const now = useNow();
  const timers = useQuery({ queryKey: ["timers"], queryFn: () => call("timers.list", { query: { limit: 200 } }) });
  const schedules = useQuery({ queryKey: ["schedules"], queryFn: () => call("schedules.list") });
  const nameOf = useNames((timers.data?.timers ?? []).map(({ run }) => run));
  const due = (at: number): string =>
    at <= now ? `${formatDuration(now - at)} late` : `in ${formatDuration(at - now)}`;
  return (
    <Screen title="Timers" about="What will happen by itself: sleeps, time limits and retries of runs, and schedules.">
      <QueryTable
        of={timers}
        rows={({ timers: rows }) => rows}
        keyOf={({ run, pos, purpose }) => `${run} ${pos} ${purpose}`}
        empty={<Empty title="No timer is set">Runs that sleep or wait with a time limit will be here.</Empty>}
        columns={[
          { name: "Status", cell: ({ status }) => <Badge status={status} /> },
          { name: "Run", cell: ({ run }) => (nameOf(run) === undefined ? "…" : <RunLink id={nameOf(run)!} />) },
          {
            name: "For",
            cell: ({ purpose, pos }) => (
              <>
                {purpose.replaceAll("_", " ")} <span className="muted small">at {pos}</span>
              </>
            ),
          },
          {
            name: "Due",
            cell: ({ status, dueAt }) => (
              <>
                {status === "SET" ? due(dueAt) : ""}
                <span className="muted small block">{formatTime(dueAt)}</span>
              </>
            ),
          },
        ]}
      />
      <section aria-labelledby="schedules">
        <h2 id="schedules">Schedules</h2>
        <QueryTable
          of={schedules}
          rows={({ schedules: rows }) => rows}
          keyOf={({ id }) => id}
          empty={
            <Empty title="No schedule">
              Make one with <code>app.schedules.create(…)</code>.
            </Empty>
          }
          columns={[
            { name: "Schedule", look: "mono", cell: ({ id }) => id },
            {
              name: "Next",
              cell: ({ paused, nextAt }) =>
                paused ? <Badge status="PAUSED" /> : nextAt === null ? "never" : due(nextAt),
            },
            { name: "What", look: "mono small", cell: ({ spec }) => brief(parseJson(spec), 160) },
          ]}
        />
      </section>
    </Screen>
  );
}
