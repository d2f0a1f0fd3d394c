import { type RenderedFile, yamlFile } from "./text.ts";

/** A rule for Prometheus, and the series for its test. */
export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly severity: "page" | "ticket";
  readonly summary: string;
  /** The section of docs/operating.md. */
  readonly section: string;
  /** Series that fire it within half an hour, and those that do not. `values` in the notation of promtool. */
  readonly fires: readonly Series[];
  readonly quiet: readonly Series[];
  /** Labels that the alert then has, besides its severity, and its summary. */
  readonly labels: Readonly<Record<string, string>>;
  readonly shown: string;
}

interface Series {
  readonly series: string;
  readonly values: string;
}

const constant = (series: string, value: number): Series => ({ series, values: `${value}x60` });
const growing = (series: string, by: number): Series => ({ series, values: `0+${by}x60` });

/** Figures of the store are the same in every process (max); those of a process are added up (sum). */
export const alertRules: readonly AlertRule[] = [
  {
    alert: "TapeRunsStuck",
    expr: 'max by (job) (tape_runs{status="STUCK"}) > 0',
    for: "5m",
    severity: "page",
    summary: "{{ $value }} runs are STUCK and wait for an operator",
    section: "a-run-is-stuck",
    fires: [constant('tape_runs{job="tape",instance="a",status="STUCK"}', 2)],
    quiet: [constant('tape_runs{job="tape",instance="a",status="STUCK"}', 0)],
    labels: { job: "tape" },
    shown: "2 runs are STUCK and wait for an operator",
  },
  {
    alert: "TapeEffectsStuck",
    expr: 'max by (job, role) (tape_effects_in_doubt{status="STUCK"}) > 0',
    for: "5m",
    severity: "page",
    summary: "{{ $value }} items ({{ $labels.role }}) are STUCK and wait for an operator",
    section: "an-effect-is-in-doubt",
    fires: [constant('tape_effects_in_doubt{job="tape",role="compensation",status="STUCK"}', 1)],
    quiet: [constant('tape_effects_in_doubt{job="tape",role="compensation",status="STUCK"}', 0)],
    labels: { job: "tape", role: "compensation" },
    shown: "1 items (compensation) are STUCK and wait for an operator",
  },
  {
    alert: "TapeInDoubt",
    expr: 'max by (job, role) (tape_in_doubt_age_seconds{status="UNKNOWN"}) > 900',
    for: "1m",
    severity: "page",
    summary: "an outcome ({{ $labels.role }}) has been UNKNOWN for {{ $value | humanizeDuration }}",
    section: "an-effect-is-in-doubt",
    fires: [constant('tape_in_doubt_age_seconds{job="tape",role="effect",status="UNKNOWN"}', 1_000)],
    quiet: [constant('tape_in_doubt_age_seconds{job="tape",role="effect",status="UNKNOWN"}', 800)],
    labels: { job: "tape", role: "effect" },
    shown: "an outcome (effect) has been UNKNOWN for 16m 40s",
  },
  {
    alert: "TapeReactorLate",
    expr: "max by (job, reactor) (tape_reactor_lag_seconds) > 60",
    for: "2m",
    severity: "page",
    summary: "work of {{ $labels.reactor }} has been due for {{ $value | humanizeDuration }}",
    section: "work-is-late",
    fires: [constant('tape_reactor_lag_seconds{job="tape",reactor="outbox"}', 90)],
    quiet: [constant('tape_reactor_lag_seconds{job="tape",reactor="outbox"}', 30)],
    labels: { job: "tape", reactor: "outbox" },
    shown: "work of outbox has been due for 1m 30s",
  },
  {
    alert: "TapeReactorMissing",
    expr: "max by (job, reactor) (tape_reactor_due) > 0 unless on (job, reactor) (sum by (job, reactor) (rate(tape_reactor_polls_total[5m])) > 0)",
    for: "5m",
    severity: "page",
    summary: "{{ $value }} items are due for {{ $labels.reactor }}, and no process polls for them",
    section: "work-is-late",
    fires: [
      constant('tape_reactor_due{job="tape",reactor="outbox"}', 3),
      constant('tape_reactor_polls_total{job="tape",reactor="outbox"}', 7),
    ],
    quiet: [
      constant('tape_reactor_due{job="tape",reactor="outbox"}', 3),
      growing('tape_reactor_polls_total{job="tape",reactor="outbox"}', 12),
    ],
    labels: { job: "tape", reactor: "outbox" },
    shown: "3 items are due for outbox, and no process polls for them",
  },
  {
    alert: "TapeUnserved",
    expr: "sum by (job, reactor) (rate(tape_reactor_unserved_total[5m])) > 0",
    for: "15m",
    severity: "ticket",
    summary: "{{ $labels.reactor }} finds work whose workflow or effect its processes do not have",
    section: "work-is-late",
    fires: [growing('tape_reactor_unserved_total{job="tape",reactor="recovery"}', 1)],
    quiet: [constant('tape_reactor_unserved_total{job="tape",reactor="recovery"}', 4)],
    labels: { job: "tape", reactor: "recovery" },
    shown: "recovery finds work whose workflow or effect its processes do not have",
  },
  {
    alert: "TapePollsFail",
    expr: "sum by (job, reactor) (rate(tape_reactor_faults_total[5m])) > 0",
    for: "10m",
    severity: "page",
    summary: "polls of {{ $labels.reactor }} fail: its processes do not reach the store",
    section: "the-store-does-not-respond",
    fires: [growing('tape_reactor_faults_total{job="tape",reactor="timers"}', 3)],
    quiet: [constant('tape_reactor_faults_total{job="tape",reactor="timers"}', 9)],
    labels: { job: "tape", reactor: "timers" },
    shown: "polls of timers fail: its processes do not reach the store",
  },
  {
    alert: "TapeFiguresMissing",
    expr: "sum by (job) (rate(tape_census_failures_total[5m])) > 0",
    for: "10m",
    severity: "ticket",
    summary: "the figures of the store cannot be read, so the other alerts are blind",
    section: "the-store-does-not-respond",
    fires: [growing('tape_census_failures_total{job="tape"}', 4)],
    quiet: [constant('tape_census_failures_total{job="tape"}', 1)],
    labels: { job: "tape" },
    shown: "the figures of the store cannot be read, so the other alerts are blind",
  },
  {
    alert: "TapeLeasesLost",
    expr: 'sum by (job, reason) (rate(tape_lease_losses_total{reactor!=""}[5m])) * 60 > 1',
    for: "5m",
    severity: "ticket",
    summary: "{{ $value | humanize }} leases per minute are lost ({{ $labels.reason }})",
    section: "leases-are-lost",
    fires: [growing('tape_lease_losses_total{job="tape",reactor="recovery",reason="expired"}', 3)],
    quiet: [{ series: 'tape_lease_losses_total{job="tape",reactor="recovery",reason="expired"}', values: "0 1 1x58" }],
    labels: { job: "tape", reason: "expired" },
    shown: "3 leases per minute are lost (expired)",
  },
  {
    alert: "TapeTakeovers",
    expr: 'sum by (job) (rate(tape_lease_takeovers_total{reactor!=""}[10m])) * 60 > 1 unless on (job) (time() - max by (job) (tape_process_start_time_seconds) < 900)',
    for: "10m",
    severity: "ticket",
    summary: "{{ $value | humanize }} leases per minute are taken over, although no process was started lately",
    section: "leases-are-lost",
    fires: [
      growing('tape_lease_takeovers_total{job="tape",reactor="recovery",reason="timeout"}', 4),
      constant('tape_process_start_time_seconds{job="tape"}', -3_600),
    ],
    quiet: [
      growing('tape_lease_takeovers_total{job="tape",reactor="recovery",reason="timeout"}', 4),
      growing('tape_process_start_time_seconds{job="tape"}', 60), // a process starts each minute
    ],
    labels: { job: "tape" },
    shown: "4 leases per minute are taken over, although no process was started lately",
  },
  {
    alert: "TapeSinkPaused",
    expr: "max by (job, sink) (tape_sink_paused) > 0",
    for: "1m",
    severity: "page",
    summary: "sink {{ $labels.sink }} is paused and sends no events until it is resumed",
    section: "a-sink-is-paused-or-late",
    fires: [constant('tape_sink_paused{job="tape",sink="billing"}', 1)],
    quiet: [constant('tape_sink_paused{job="tape",sink="billing"}', 0)],
    labels: { job: "tape", sink: "billing" },
    shown: "sink billing is paused and sends no events until it is resumed",
  },
  {
    alert: "TapeSinkLate",
    expr: "max by (job, sink) (tape_sink_lag_seconds) > 300",
    for: "5m",
    severity: "page",
    summary: "sink {{ $labels.sink }} is {{ $value | humanizeDuration }} late",
    section: "a-sink-is-paused-or-late",
    fires: [constant('tape_sink_lag_seconds{job="tape",sink="billing"}', 600)],
    quiet: [constant('tape_sink_lag_seconds{job="tape",sink="billing"}', 4)],
    labels: { job: "tape", sink: "billing" },
    shown: "sink billing is 10m 0s late",
  },
  {
    alert: "TapeDeadLetters",
    expr: "max by (job, sink) (tape_sink_dead_letters_open) > 0",
    for: "1m",
    severity: "ticket",
    summary: "sink {{ $labels.sink }} has {{ $value }} open dead letters",
    section: "a-sink-is-paused-or-late",
    fires: [constant('tape_sink_dead_letters_open{job="tape",sink="billing"}', 3)],
    quiet: [constant('tape_sink_dead_letters_open{job="tape",sink="billing"}', 0)],
    labels: { job: "tape", sink: "billing" },
    shown: "sink billing has 3 open dead letters",
  },
  {
    alert: "TapeRetentionHeld",
    expr: "max by (job, sink) (tape_retention_held) > 0",
    for: "15m",
    severity: "ticket",
    summary: "pruning keeps {{ $value }} ended runs for sink {{ $labels.sink }}",
    section: "a-sink-is-paused-or-late",
    fires: [constant('tape_retention_held{job="tape",sink="billing"}', 40)],
    quiet: [constant('tape_retention_held{job="tape",sink="billing"}', 0)],
    labels: { job: "tape", sink: "billing" },
    shown: "pruning keeps 40 ended runs for sink billing",
  },
  {
    alert: "TapePushFails",
    expr: 'sum by (job, reactor) (increase(tape_push_requests_total{outcome=~"failed|unavailable"}[10m])) > 3',
    for: "5m",
    severity: "ticket",
    summary: "requests that wake {{ $labels.reactor }} fail",
    section: "alarms-or-push-requests-fail",
    fires: [growing('tape_push_requests_total{job="tape",reactor="outbox",outcome="failed"}', 1)],
    quiet: [growing('tape_push_requests_total{job="tape",reactor="outbox",outcome="done"}', 1)],
    labels: { job: "tape", reactor: "outbox" },
    shown: "requests that wake outbox fail",
  },
  {
    alert: "TapeAlarmsFail",
    expr: 'sum by (job) (increase(tape_alarms_set_total{outcome="failed"}[10m])) > 0',
    for: "1m",
    severity: "page",
    summary: "alarms cannot be set, so writes are refused with TAPE_UNARMED",
    section: "alarms-or-push-requests-fail",
    fires: [growing('tape_alarms_set_total{job="tape",outcome="failed"}', 1)],
    quiet: [growing('tape_alarms_set_total{job="tape",outcome="set"}', 1)],
    labels: { job: "tape" },
    shown: "alarms cannot be set, so writes are refused with TAPE_UNARMED",
  },
  {
    alert: "TapeShardsUnheld",
    expr: "max by (job, name) (tape_singleton_shards_unheld) > 0",
    for: "2m",
    severity: "page",
    summary: "{{ $value }} shards of singleton {{ $labels.name }} have no holder",
    section: "shards-have-no-holder",
    fires: [
      constant('tape_singleton_shards_unheld{job="tape",instance="a",name="sweep"}', 2),
      constant('tape_singleton_shards_unheld{job="tape",instance="b",name="sweep"}', 2),
    ],
    quiet: [constant('tape_singleton_shards_unheld{job="tape",instance="a",name="sweep"}', 0)],
    labels: { job: "tape", name: "sweep" },
    shown: "2 shards of singleton sweep have no holder",
  },
  {
    alert: "TapeFeedBlocked",
    expr: "max by (job) (tape_feed_blocked_seconds) > 60",
    for: "1m",
    severity: "ticket",
    summary: "a transaction has been open for {{ $value | humanizeDuration }} and holds the feed back",
    section: "the-feed-stands-still",
    fires: [constant('tape_feed_blocked_seconds{job="tape"}', 120)],
    quiet: [constant('tape_feed_blocked_seconds{job="tape"}', 2)],
    labels: { job: "tape" },
    shown: "a transaction has been open for 2m 0s and holds the feed back",
  },
];

/** Where the docs say what to do. */
const page = "docs/operating.md";

/** `alerts.yaml`, the rules for Prometheus, and `alerts.test.yaml`, their tests for `promtool test rules`. */
export function alertFiles(rules: readonly AlertRule[] = alertRules): RenderedFile[] {
  const group = {
    name: "tape",
    rules: rules.map(({ alert, expr, for: lasting, severity, summary, section }) => ({
      ...{ alert, expr, for: lasting },
      labels: { severity },
      annotations: { summary, runbook: `${page}#${section}` },
    })),
  };
  const tests = rules.flatMap((rule) => [
    testOf(rule, rule.fires, [
      {
        exp_labels: { severity: rule.severity, ...rule.labels },
        exp_annotations: { summary: rule.shown, runbook: `${page}#${rule.section}` },
      },
    ]),
    testOf(rule, rule.quiet, []),
  ]);
  return [
    yamlFile("alerts.yaml", [{ groups: [group] }]),
    yamlFile("alerts.test.yaml", [{ rule_files: ["alerts.yaml"], evaluation_interval: "1m", tests }]),
  ];
}

/** Whether the alert fires after half an hour. */
function testOf({ alert }: AlertRule, series: readonly Series[], expected: readonly object[]): object {
  const name = `${alert} ${expected.length === 0 ? "is quiet" : "fires"}`;
  return {
    ...{ name, interval: "1m", input_series: series },
    alert_rule_test: [{ eval_time: "30m", alertname: alert, exp_alerts: expected }],
  };
}
