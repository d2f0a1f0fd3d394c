/** Metrics in the Prometheus text format 0.0.4, without a library: only three kinds are needed. */

export type Labels = Readonly<Record<string, string>>;
export type Sample = readonly [labels: Labels, value: number];

/** A family of series, as numbers. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  samples(): readonly Sample[];
}

interface Histogram {
  readonly name: string;
  readonly help: string;
  readonly type: "histogram";
  lines(): Iterable<string>;
}

/** Seconds, from a cache hit to the longest wait of a caller. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The registry of a process. A family is registered once, by the part that keeps its figures. */
export class Metrics {
  readonly #metrics: (MetricFamily | Histogram)[] = [];
  readonly #listeners: ((family: MetricFamily) => void)[] = [];

  /** Only increases; its name ends in _total. */
  counter(name: string, help: string): (labels?: Labels, by?: number) => void {
    const counts = new Map<string, { readonly labels: Labels; value: number }>();
    const samples = () => [...counts.values()].map(({ labels, value }): Sample => [labels, value]);
    this.#add({ name, help, type: "counter", samples });
    return (labels = {}, by = 1) => {
      const key = keyOf(labels);
      const known = counts.get(key);
      if (known === undefined) counts.set(key, { labels, value: by });
      else known.value += by;
    };
  }

  /** Evaluated at each scrape. */
  gauge(name: string, help: string, value: () => number): void {
    this.#add({ name, help, type: "gauge", samples: () => [[{}, value()]] });
  }

  /** Several series, evaluated at each scrape. A counter that another part of the system keeps is one, too. */
  series(name: string, help: string, type: "counter" | "gauge", samples: () => readonly Sample[]): void {
    this.#add({ name, help, type, samples });
  }

  /** In seconds. */
  histogram(name: string, help: string): (seconds: number, labels?: Labels) => void {
    const series = new Map<string, { labels: Labels; counts: number[]; sum: number; count: number }>();
    this.#metrics.push({
      ...{ name, help, type: "histogram" },
      *lines() {
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
      const key = keyOf(labels);
      let entry = series.get(key);
      if (entry === undefined) {
        entry = { labels, counts: buckets.map(() => 0), sum: 0, count: 0 };
        series.set(key, entry);
      }
      entry.sum += seconds;
      entry.count++;
      for (let k = buckets.length - 1; k >= 0 && seconds <= buckets[k]!; k--) entry.counts[k]!++;
    };
  }

  /** Calls the listener with every counter and gauge: those that are registered, and each later one. */
  onFamily(listener: (family: MetricFamily) => void): void {
    for (const metric of this.#metrics) if (metric.type !== "histogram") listener(metric);
    this.#listeners.push(listener);
  }

  text(): string {
    return this.#metrics
      .map((metric) => {
        const { name, help, type } = metric;
        const lines = "lines" in metric ? metric.lines() : linesOf(metric);
        return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines].join("\n");
      })
      .join("\n")
      .concat("\n");
  }

  #add(metric: MetricFamily): void {
    this.#metrics.push(metric);
    for (const listener of this.#listeners) listener(metric);
  }
}

function* linesOf({ name, samples }: MetricFamily): Iterable<string> {
  for (const [labels, value] of samples()) yield `${name}${labelText(labels)} ${value}`;
}

/** Names a series within its family. Each call counts, so this is not the escaped text that a scrape shows. */
function keyOf(labels: Labels): string {
  let key = "";
  for (const name in labels) key += `${name}\0${labels[name]}\0`;
  return key;
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}
