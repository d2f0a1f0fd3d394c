import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { call, type Wire } from "../api.ts";
import { formatDuration } from "../format.ts";
import type { Tone } from "../ui/badge.tsx";
import { BudgetBar } from "../ui/budget-bar.tsx";
import { Chart, durations, type Series } from "../ui/chart.tsx";
import { QueryView } from "../ui/query-view.tsx";

type History = Wire<"overview.history">;

const minutes = 60;
const buckets = 30;
const lineTones: readonly Tone[] = ["run", "wait", "doubt", "ok", "idle"];

/** The last hour: how much was done, and how late the reactors were. */
export function Trends() {
  const history = useHistory();
  return (
    <QueryView of={history}>
      {(data) => (
        <div className="halves">
          <section className="card" aria-label="Throughput">
            <Throughput {...data} />
          </section>
          <section className="card" aria-label="Reactor lag">
            <Lag {...data} />
          </section>
        </div>
      )}
    </QueryView>
  );
}

export const useHistory = () =>
  useQuery({
    queryKey: ["history"],
    queryFn: () => call("overview.history", { query: { minutes, buckets } }),
    refetchInterval: 30_000,
    // Every change of the store changes these counts a little: once in a while is enough.
    meta: { settled: true },
  });

function Throughput({ runs, bucketMs }: History) {
  const sum = (of: readonly number[]): number => of.reduce((total, one) => total + one, 0);
  const ended = runs.map(({ ended: all, failed }) => all - failed);
  const failed = runs.map((one) => one.failed);
  const started = runs.map((one) => one.started);
  const span = runs.length * bucketMs;
  return (
    <Chart
      title={`Runs in ${formatDuration(bucketMs)}`}
      spanMs={span}
      format={(count) => count.toLocaleString("en")}
      summary={`in the last ${formatDuration(span)} ${sum(started)} started, ${sum(ended)} ended well, ${sum(failed)} failed`}
      series={[
        { name: "ended well", tone: "ok", kind: "bar", values: ended },
        { name: "failed", tone: "bad", kind: "bar", values: failed },
        { name: "started", tone: "run", kind: "line", values: started },
      ]}
    />
  );
}

function Lag({ reactors, runs, bucketMs, now }: History) {
  const from = runs[0]?.at ?? now - minutes * 60_000;
  const series: Series[] = reactors.map(({ reactor, samples }, k) => {
    const values = runs.map((): number | null => null);
    for (const { at, lagMs } of samples) {
      const bucket = Math.floor((at - from) / bucketMs);
      if (bucket >= 0 && bucket < values.length) values[bucket] = Math.max(values[bucket] ?? 0, lagMs);
    }
    return { name: reactor, tone: lineTones[k % lineTones.length]!, kind: "line", values };
  });
  const last = reactors.map(({ reactor, samples }) => `${reactor} ${formatDuration(samples.at(-1)?.lagMs ?? 0)}`);
  return (
    <Chart
      title="How late the reactors are"
      spanMs={runs.length * bucketMs}
      format={(ms) => formatDuration(ms)}
      tops={durations}
      summary={last.length === 0 ? "not measured yet" : `now ${last.join(", ")}`}
      series={series}
    />
  );
}

/** What runs that have not ended have spent of what they may. */
export function BudgetSummary() {
  const budgets = useQuery({ queryKey: ["budgets"], queryFn: () => call("budgets.list", { query: { limit: 20 } }) });
  if (budgets.data === undefined || budgets.data.units.length === 0) return null;
  return (
    <section className="card" aria-labelledby="spend">
      <header>
        <h2 id="spend">Spend against budgets</h2>
        <Link to="/budgets" className="small">
          all budgets
        </Link>
      </header>
      {budgets.data.units.map(({ runs, ...one }) => (
        <BudgetBar key={one.unit} {...one} of={`${runs} ${runs === 1 ? "run" : "runs"}`} />
      ))}
    </section>
  );
}
