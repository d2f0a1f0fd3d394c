import { useQuery } from "@tanstack/react-query";
import type { Wire } from "../api.ts";
import { formatDuration } from "../format.ts";
import { history } from "../queries.ts";
import type { Tone } from "../ui/badge.tsx";
import { Chart, durationTops, type Series } from "../ui/chart.tsx";
import { QueryView } from "../ui/query-view.tsx";

type History = Wire<"overview.history">;

const lineTones: readonly Tone[] = ["run", "wait", "unknown", "ok", "idle"];

/** The last hour: runs started and ended, and the lag of each reactor. */
export function Trends() {
  return (
    <QueryView of={useQuery(history())}>
      {(data) => (
        <div className="halves">
          <section className="card" aria-label="Throughput">
            <Throughput {...data} />
          </section>
          <section className="card" aria-label="Reactor lag">
            <ReactorLag {...data} />
          </section>
        </div>
      )}
    </QueryView>
  );
}

function Throughput({ runs, bucketMs }: History) {
  const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
  const failed = runs.map((bucket) => bucket.failed);
  const ended = runs.map((bucket) => bucket.ended - bucket.failed);
  const started = runs.map((bucket) => bucket.started);
  const spanMs = runs.length * bucketMs;
  const [all, well, badly] = [sum(started), sum(ended), sum(failed)];
  return (
    <Chart
      title={`Runs per ${formatDuration(bucketMs)}`}
      spanMs={spanMs}
      format={(count) => count.toLocaleString("en")}
      summary={`last ${formatDuration(spanMs)}: ${all} started, ${well} ended without failure, ${badly} failed`}
      series={[
        { name: "ended without failure", tone: "ok", kind: "bar", values: ended },
        { name: "failed", tone: "bad", kind: "bar", values: failed },
        { name: "started", tone: "run", kind: "line", values: started },
      ]}
    />
  );
}

function ReactorLag({ reactors, runs, bucketMs, now }: History) {
  const from = runs[0]?.at ?? now - runs.length * bucketMs;
  const series: Series[] = reactors.map(({ reactor, samples }, k) => {
    const values = runs.map((): number | null => null);
    for (const { at, lagMs } of samples) {
      const bucket = Math.floor((at - from) / bucketMs);
      if (bucket >= 0 && bucket < values.length) values[bucket] = Math.max(values[bucket] ?? 0, lagMs);
    }
    return { name: reactor, tone: lineTones[k % lineTones.length]!, kind: "line", values };
  });
  const latest = reactors.map(({ reactor, samples }) => `${reactor} ${formatDuration(samples.at(-1)?.lagMs ?? 0)}`);
  return (
    <Chart
      title="Reactor lag"
      spanMs={runs.length * bucketMs}
      format={(ms) => formatDuration(ms)}
      tops={durationTops}
      summary={latest.length === 0 ? "no samples yet" : `now ${latest.join(", ")}`}
      series={series}
    />
  );
}
