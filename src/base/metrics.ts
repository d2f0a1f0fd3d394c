/** Metrics in the Prometheus text format 0.0.4, without a library: only three kinds are needed. */

export type Labels = Readonly<Record<string, string>>;
export type Sample = readonly [labels: Labels, value: number];

interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  samples(): Iterable<string>;
}

/** Seconds, from a cache hit to the longest wait of a caller. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export class Metrics {
  readonly #metrics: Metric[] = [];

  /** Only increases; its name ends in _total. */
  counter(name: string, help: string): (labels?: Labels, by?: number) => void {
    const counts = new Map<string, number>();
    this.#add({ name, help, type: "counter", samples: () => samplesOf(name, counts) });
    return (labels = {}, by = 1) => {
      const key = labelText(labels);
      counts.set(key, (counts.get(key) ?? 0) + by);
    };
  }

  /** Evaluated at each scrape. */
  gauge(name: string, help: string, value: () => number): void {
    this.#add({ name, help, type: "gauge", samples: () => [`${name} ${value()}`] });
  }

  /** Several series, evaluated at each scrape. A counter that another part of the system keeps is one, too. */
  series(name: string, help: string, type: "counter" | "gauge", samples: () => readonly Sample[]): void {
    this.#add({
      ...{ name, help, type },
      samples: () => samples().map(([labels, value]) => `${name}${labelText(labels)} ${value}`),
    });
  }

  /** In seconds. */
  histogram(name: string, help: string): (seconds: number, labels?: Labels) => void {
    const series = new Map<string, { labels: Labels; counts: number[]; sum: number; count: number }>();
    this.#add({
      ...{ name, help, type: "histogram" as const },
      *samples() {
        for (const { labels, counts, sum, count } of series.values()) {
          for (const [k, bound] of buckets.entries()) {
            yield `${name}_bucket${labelText({ ...labels, le: String(bound) })} ${counts[k]}`;
          }
          yield `${name}_bucket${labelText({ ...labels, le: "+Inf" })} ${count}`;
          yield `${name}_sum${labelText(labels)} ${sum}`;
          yield `${name}_count${labelText(labels)} ${count}`;
        }
      },
    });
    return (seconds, labels = {}) => {
      const key = labelText(labels);
      const entry = series.get(key) ?? { labels, counts: buckets.map(() => 0), sum: 0, count: 0 };
      series.set(key, entry);
      entry.sum += seconds;
      entry.count++;
      for (const [k, bound] of buckets.entries()) if (seconds <= bound) entry.counts[k]!++;
    };
  }

  text(): string {
    return this.#metrics
      .map(({ name, help, type, samples }) =>
        [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samples()].join("\n"),
      )
      .join("\n")
      .concat("\n");
  }

  #add(metric: Metric): void {
    this.#metrics.push(metric);
  }
}

function* samplesOf(name: string, counts: ReadonlyMap<string, number>): Iterable<string> {
  for (const [labels, count] of counts) yield `${name}${labels} ${count}`;
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}
