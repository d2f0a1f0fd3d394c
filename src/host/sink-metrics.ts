import type { Metrics, Sample } from "../base/metrics.ts";
import type { FanoutView } from "../events/fanout.ts";

type Figure = readonly [name: string, type: "counter" | "gauge", help: string, figure: (view: FanoutView) => number];

const figures: readonly Figure[] = [
  ["tape_sink_events_total", "counter", "Events that this process has delivered, by sink.", (view) => view.delivered],
  ["tape_sink_retries_total", "counter", "Deliveries that failed and are repeated, by sink.", (view) => view.retries],
  [
    "tape_sink_dead_letters_total",
    "counter",
    "Events that became dead letters in this process, by sink.",
    (view) => view.deadLetters,
  ],
  ["tape_sink_in_flight", "gauge", "Events that were read and are not settled, by sink.", (view) => view.inFlight],
];

/** Counters of the fan-outs of an app. Only the process that holds a sink's lease sends; the store has the other figures. */
export function addSinkMetrics(registry: Metrics, views: () => readonly FanoutView[]): void {
  for (const [name, type, help, figure] of figures) {
    registry.series(name, help, type, () => views().map((view): Sample => [{ sink: view.name }, figure(view)]));
  }
}
