import type { RenderedFile } from "./text.ts";

/** The parts of a board of Grafana that this one uses; a test compares them with Grafana's own types. */
export interface Board {
  title: string;
  uid: string;
  tags: string[];
  schemaVersion: number;
  editable: boolean;
  refresh: string;
  time: { from: string; to: string };
  templating: { list: BoardVariable[] };
  panels: (BoardPanel | BoardRow)[];
}

interface BoardVariable {
  name: string;
  label: string;
  type: "datasource" | "query";
  query: string;
  datasource?: { type: string; uid: string };
  includeAll?: boolean;
  multi?: boolean;
  refresh?: 1 | 2;
  current?: { text: string; value: string };
}

interface GridPosition {
  x: number;
  y: number;
  w: number;
  h: number;
}

interface BoardRow {
  id: number;
  type: "row";
  title: string;
  collapsed: boolean;
  gridPos: GridPosition;
  panels: [];
}

export interface BoardPanel {
  id: number;
  type: "stat" | "timeseries";
  title: string;
  description: string;
  datasource: { type: string; uid: string };
  gridPos: GridPosition;
  targets: { refId: string; expr: string; legendFormat: string; datasource: { type: string; uid: string } }[];
  fieldConfig: {
    defaults: {
      unit: string;
      min: number;
      thresholds: { mode: "absolute"; steps: { color: string; value: number | null }[] };
    };
    overrides: [];
  };
  options: Record<string, unknown>;
}

type Plot = readonly [
  title: string,
  description: string,
  unit: "short" | "s" | "ops",
  queries: readonly (readonly [legend: string, expr: string])[],
  /** From this value on it is red. */
  threshold?: number,
];

const store = (metric: string, by: string, where = ""): string =>
  `max by (${by}) (${metric}{job=~"$job"${where === "" ? "" : `,${where}`}})`;
const rate = (metric: string, by: string, where = ""): string =>
  `sum by (${by}) (rate(${metric}{job=~"$job"${where === "" ? "" : `,${where}`}}[$__rate_interval]))`;

/** Figures of the store are the same in every process (max); those of a process are added up (sum). */
const rows: readonly (readonly [title: string, stats: readonly Plot[], plots: readonly Plot[]])[] = [
  [
    "What needs an operator",
    [
      ["Runs STUCK", "They wait for an operator.", "short", [["", store("tape_runs", "job", 'status="STUCK"')]], 1],
      [
        "Effects STUCK",
        "Effects and obligations that wait for an operator.",
        "short",
        [["{{role}}", store("tape_effects_in_doubt", "role", 'status="STUCK"')]],
        1,
      ],
      [
        "Oldest UNKNOWN",
        "How long the oldest outcome has been in doubt.",
        "s",
        [["{{role}}", store("tape_in_doubt_age_seconds", "role", 'status="UNKNOWN"')]],
        900,
      ],
      [
        "Feed blocked",
        "How long a transaction has held the feed back.",
        "s",
        [["", store("tape_feed_blocked_seconds", "job")]],
        60,
      ],
    ],
    [],
  ],
  [
    "Work",
    [],
    [
      [
        "Lag",
        "How long the oldest due item has been due.",
        "s",
        [["{{reactor}}", store("tape_reactor_lag_seconds", "reactor")]],
        60,
      ],
      [
        "Due",
        "Items that a reactor could claim now, counted up to 10000.",
        "short",
        [["{{reactor}}", store("tape_reactor_due", "reactor")]],
      ],
      ["Open runs", "Without WAITING, counted up to 10000.", "short", [["{{status}}", store("tape_runs", "status")]]],
      [
        "In doubt",
        "UNKNOWN and STUCK.",
        "short",
        [["{{role}} {{status}}", store("tape_effects_in_doubt", "role, status")]],
      ],
    ],
  ],
  [
    "Reactors",
    [],
    [
      ["Done", "Items done per second.", "ops", [["{{reactor}}", rate("tape_reactor_done_total", "reactor")]]],
      [
        "Failed, unserved, faults",
        "Items released for a retry or lost, items that no process here can do, polls that failed.",
        "ops",
        [
          ["{{reactor}} failed", rate("tape_reactor_failed_total", "reactor")],
          ["{{reactor}} unserved", rate("tape_reactor_unserved_total", "reactor")],
          ["{{reactor}} faults", rate("tape_reactor_faults_total", "reactor")],
        ],
      ],
      [
        "In progress",
        "Items in progress and runs driven, by process.",
        "short",
        [
          ["{{instance}} {{reactor}}", 'sum by (instance, reactor) (tape_reactor_busy{job=~"$job"})'],
          ["{{instance}} runs", 'sum by (instance) (tape_runs_driving{job=~"$job"})'],
        ],
      ],
      [
        "Polls and finds",
        "Polls for work, and items that they found, per second.",
        "ops",
        [
          ["{{reactor}} polls", rate("tape_reactor_polls_total", "reactor")],
          ["{{reactor}} found", rate("tape_reactor_found_total", "reactor")],
        ],
      ],
    ],
  ],
  [
    "Leases",
    [],
    [
      ["Held", "By kind, counted up to 10000.", "short", [["{{kind}}", store("tape_lease_held", "kind")]]],
      [
        "Acquired",
        "Terms granted per second.",
        "ops",
        [["{{reactor}} {{reason}}", rate("tape_lease_acquires_total", "reactor, reason", 'reactor!=""')]],
      ],
      [
        "Taken over",
        "Terms that ended another holder's term, per second.",
        "ops",
        [["{{reactor}} {{reason}}", rate("tape_lease_takeovers_total", "reactor, reason", 'reactor!=""')]],
      ],
      [
        "Lost",
        "Terms that a process lost, per second.",
        "ops",
        [["{{reactor}} {{reason}}", rate("tape_lease_losses_total", "reactor, reason", 'reactor!=""')]],
      ],
    ],
  ],
  [
    "Sinks",
    [],
    [
      [
        "Late",
        "Age of the first record that a sink has not passed.",
        "s",
        [["{{sink}}", store("tape_sink_lag_seconds", "sink")]],
        300,
      ],
      [
        "Delivered, repeated, dead",
        "Events delivered, deliveries repeated, and dead letters, per second.",
        "ops",
        [
          ["{{sink}} delivered", rate("tape_sink_events_total", "sink")],
          ["{{sink}} repeated", rate("tape_sink_retries_total", "sink")],
          ["{{sink}} dead letters", rate("tape_sink_dead_letters_total", "sink")],
        ],
      ],
      ["Under way", "Events read and not settled.", "short", [["{{sink}}", store("tape_sink_in_flight", "sink")]]],
      ["Paused", "1 while a sink is paused.", "short", [["{{sink}}", store("tape_sink_paused", "sink")]], 1],
      [
        "Open dead letters, runs kept",
        "Dead letters that wait for an operator, and ended runs that pruning keeps for a sink.",
        "short",
        [
          ["{{sink}} dead letters", store("tape_sink_dead_letters_open", "sink")],
          ["{{sink}} runs kept", store("tape_retention_held", "sink")],
        ],
        1,
      ],
    ],
  ],
  [
    "Retention",
    [],
    [
      [
        "Archived and deleted",
        "Runs that reached the archive and were deleted, and passes that failed, per second.",
        "ops",
        [
          ["runs", rate("tape_retention_runs_total", "job")],
          ["failed passes", rate("tape_retention_failures_total", "job")],
        ],
      ],
      [
        "Written",
        "Bytes written to the archive, per second.",
        "short",
        [["bytes", rate("tape_retention_bytes_total", "job")]],
      ],
      ["Lag", "How long the oldest tree has been due.", "s", [["lag", store("tape_retention_lag_seconds", "job")]]],
    ],
  ],
  [
    "Models",
    [],
    [
      [
        "Calls",
        "Calls of models per second, by outcome. Replayed calls do not count.",
        "ops",
        [["{{model}} {{outcome}}", rate("tape_model_calls_total", "model, outcome")]],
      ],
      [
        "Tokens",
        "Tokens per second, by direction.",
        "ops",
        [["{{model}} {{direction}}", rate("tape_model_tokens_total", "model, direction")]],
      ],
      [
        "US dollars an hour",
        "Cost of the calls for which a price is known.",
        "short",
        [["", `3600 * ${rate("tape_model_cost_usd_total", "job")}`]],
      ],
    ],
  ],
  [
    "Wake-ups, alarms, shards",
    [],
    [
      [
        "Wake-ups",
        "Requests to push handlers per second, by reactor and outcome.",
        "ops",
        [["{{reactor}} {{outcome}}", rate("tape_push_requests_total", "reactor, outcome")]],
      ],
      [
        "Alarms",
        "Alarms requested per second, by outcome.",
        "ops",
        [["{{outcome}}", rate("tape_alarms_set_total", "outcome")]],
      ],
      [
        "Shards",
        "Shards that each process holds.",
        "short",
        [["{{instance}} {{name}}", 'sum by (instance, name) (tape_singleton_shards{job=~"$job"})']],
      ],
      [
        "Shards without a holder",
        "Shards that no process takes.",
        "short",
        [["{{name}}", store("tape_singleton_shards_unheld", "name")]],
        1,
      ],
    ],
  ],
];

// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Grafana
const source = { type: "prometheus", uid: "${datasource}" };
/** Grafana's grid is this wide. */
const gridWidth = 24;

/** A board for Grafana over the metrics of all processes. */
export function board(): Board {
  const panels: Board["panels"] = [];
  let y = 0;
  const place = (plots: readonly Plot[], type: BoardPanel["type"], h: number): void => {
    const w = gridWidth / Math.max(1, plots.length);
    for (const [k, plot] of plots.entries()) {
      panels.push(panelOf(plot, type, { id: panels.length + 1, gridPos: { x: k * w, y, w, h } }));
    }
    if (plots.length > 0) y += h;
  };
  for (const [title, stats, plots] of rows) {
    const gridPos = { x: 0, y, w: gridWidth, h: 1 };
    panels.push({ id: panels.length + 1, type: "row", title, collapsed: false, gridPos, panels: [] });
    y += 1;
    place(stats, "stat", 4);
    place(plots, "timeseries", 8);
  }
  return {
    ...{ title: "Tape", uid: "durable-tape", tags: ["durable-tape"], schemaVersion: 39, editable: true },
    ...{ refresh: "30s", time: { from: "now-3h", to: "now" } },
    templating: {
      list: [
        { name: "datasource", label: "Data source", type: "datasource", query: "prometheus" },
        {
          ...{ name: "job", label: "Job", type: "query", query: "label_values(tape_reactor_due, job)" },
          ...{ datasource: source, includeAll: true, multi: true, refresh: 2 },
          current: { text: "All", value: "$__all" },
        },
      ],
    },
    panels,
  };
}

function panelOf(
  [title, description, unit, queries, threshold]: Plot,
  type: BoardPanel["type"],
  place: Pick<BoardPanel, "id" | "gridPos">,
): BoardPanel {
  const red = threshold === undefined ? [] : [{ color: "red", value: threshold }];
  return {
    ...place,
    ...{ type, title, description, datasource: source },
    targets: queries.map(([legendFormat, expr], k) => ({
      ...{ refId: String.fromCharCode(65 + k), expr, legendFormat, datasource: source },
    })),
    fieldConfig: {
      defaults: { unit, min: 0, thresholds: { mode: "absolute", steps: [{ color: "green", value: null }, ...red] } },
      overrides: [],
    },
    options:
      type === "stat"
        ? { reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false }, colorMode: "background" }
        : { legend: { displayMode: "list", placement: "bottom", showLegend: true }, tooltip: { mode: "multi" } },
  };
}

/** `dashboard.json`, to be imported into Grafana. */
export const boardFile = (): RenderedFile => ({
  path: "dashboard.json",
  text: `${JSON.stringify(board(), null, 2)}\n`,
});
