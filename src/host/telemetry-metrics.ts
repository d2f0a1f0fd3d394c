import type { Labels, MetricFamily, Metrics } from "../base/metrics.ts";

/** The parts of `@opentelemetry/api` that {@link openTelemetryMetrics} uses. Your program brings the package. */
export interface OpenTelemetryMetricsApi {
  /** Meters by name. */
  readonly metrics: {
    getMeter(name: string): {
      createObservableCounter(name: string, options?: InstrumentOptions): ObservableInstrument;
      createObservableGauge(name: string, options?: InstrumentOptions): ObservableInstrument;
    };
  };
}

interface InstrumentOptions {
  readonly description?: string;
  readonly unit?: string;
}

/** An instrument that asks for its figures when they are exported. */
export interface ObservableInstrument {
  /** Calls this function at each export. */
  addCallback(callback: ObserveFigures): void;
  /** No longer calls it. */
  removeCallback(callback: ObserveFigures): void;
}

type ObserveFigures = (result: { observe(value: number, attributes?: Labels): void }) => Promise<void>;

/** Hands the metrics of a process to another system. Returns the function that ends it. */
export type MetricsExport = (metrics: { readonly registry: Metrics; refresh(): Promise<void> }) => () => void;

/**
 * The metrics of `/metrics` as instruments of OpenTelemetry: pass the module `@opentelemetry/api` of your program. Each
 * export reads the figures; those of the store at most every 15 s. A Prometheus exporter gives them the same names.
 *
 * @example
 * import * as api from "@opentelemetry/api";
 * await using app = await Tape.open({ store, runner, metrics: { export: openTelemetryMetrics(api) } });
 */
export function openTelemetryMetrics(api: OpenTelemetryMetricsApi): MetricsExport {
  return (metrics) => {
    const meter = api.metrics.getMeter("durable-tape");
    const ends: (() => void)[] = [];
    let ended = false;
    metrics.registry.onFamily(({ name, help, type, samples }: MetricFamily) => {
      if (ended) return;
      const unit = /_seconds$/.test(name) ? "s" : undefined;
      const plain = name.replace(/_(total|seconds)$/, "");
      const options = { description: help, ...(unit !== undefined && { unit }) };
      const instrument =
        type === "counter"
          ? meter.createObservableCounter(plain, options)
          : meter.createObservableGauge(plain, options);
      const observe: ObserveFigures = async (result) => {
        await metrics.refresh();
        for (const [labels, value] of samples()) result.observe(value, labels);
      };
      instrument.addCallback(observe);
      ends.push(() => instrument.removeCallback(observe));
    });
    return () => {
      ended = true;
      for (const end of ends) end();
    };
  };
}
