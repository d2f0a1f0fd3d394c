import { useQuery } from "@tanstack/react-query";
import { call } from "../api.ts";
import { brief, lasting, momentOf } from "../format.ts";
import { Badge } from "../ui/badge.tsx";
import { useNames } from "../ui/names.ts";
import { useNow } from "../ui/now.ts";
import { Answer, Empty, RunLink, Screen } from "../ui/parts.tsx";

export function Timers() {
  const now = useNow();
  const timers = useQuery({ queryKey: ["timers"], queryFn: () => call("timers.list", { query: { limit: 200 } }) });
  const schedules = useQuery({ queryKey: ["schedules"], queryFn: () => call("schedules.list") });
  const nameOf = useNames((timers.data?.timers ?? []).map(({ run }) => run));
  const due = (at: number): string => (at <= now ? `${lasting(now - at)} late` : `in ${lasting(at - now)}`);
  return (
    <Screen title="Timers" about="What will happen by itself: sleeps, time limits and retries of runs, and schedules.">
      <Answer of={timers}>
        {({ timers: rows }) =>
          rows.length === 0 ? (
            <Empty title="No timer is set">Runs that sleep or wait with a time limit will be here.</Empty>
          ) : (
            <div className="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Status</th>
                    <th scope="col">Run</th>
                    <th scope="col">For</th>
                    <th scope="col">Due</th>
                  </tr>
                </thead>
                <tbody>
                  {rows.map(({ run, pos, purpose, status, dueAt }) => {
                    const id = nameOf(run);
                    return (
                      <tr key={`${run} ${pos} ${purpose}`}>
                        <td>
                          <Badge status={status} />
                        </td>
                        <td>{id === undefined ? "…" : <RunLink id={id} />}</td>
                        <td>
                          {purpose.replaceAll("_", " ")} <span className="muted small">at {pos}</span>
                        </td>
                        <td>
                          {status === "SET" ? due(dueAt) : ""}
                          <span className="muted small block">{momentOf(dueAt)}</span>
                        </td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            </div>
          )
        }
      </Answer>
      <section aria-labelledby="schedules">
        <h2 id="schedules">Schedules</h2>
        <Answer of={schedules}>
          {({ schedules: rows }) =>
            rows.length === 0 ? (
              <Empty title="No schedule">
                Make one with <code>app.schedules.create(…)</code>.
              </Empty>
            ) : (
              <div className="scroll">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">Schedule</th>
                      <th scope="col">Next</th>
                      <th scope="col">What</th>
                    </tr>
                  </thead>
                  <tbody>
                    {rows.map(({ id, nextAt, paused, spec }) => (
                      <tr key={id}>
                        <td className="mono">{id}</td>
                        <td>{paused ? <Badge status="PAUSED" /> : nextAt === null ? "never" : due(nextAt)}</td>
                        <td className="mono small">{brief(spec, 160)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )
          }
        </Answer>
      </section>
    </Screen>
  );
}
