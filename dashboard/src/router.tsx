import { createRootRoute, createRoute, createRouter, Link } from "@tanstack/react-router";
import { cleanLabels, labelsOfOlder, type RunSearch } from "./run-search.ts";
import { AttentionScreen } from "./screens/attention-screen.tsx";
import { AuditScreen } from "./screens/audit-screen.tsx";
import { BudgetsScreen } from "./screens/budgets-screen.tsx";
import { BuildsScreen } from "./screens/builds-screen.tsx";
import { EffectsScreen } from "./screens/effects-screen.tsx";
import { GatesScreen } from "./screens/gates-screen.tsx";
import { HealthScreen } from "./screens/health-screen.tsx";
import { LeasesScreen } from "./screens/leases-screen.tsx";
import { OverviewScreen } from "./screens/overview-screen.tsx";
import { QueueScreen } from "./screens/queue-screen.tsx";
import { QueuesScreen } from "./screens/queues-screen.tsx";
import { RunScreen, type RunTab, runTabs } from "./screens/run-screen.tsx";
import { RunsScreen } from "./screens/runs-screen.tsx";
import { SinkScreen } from "./screens/sink-screen.tsx";
import { SinksScreen } from "./screens/sinks-screen.tsx";
import { TimersScreen } from "./screens/timers-screen.tsx";
import { ValuesScreen } from "./screens/values-screen.tsx";
import { Shell } from "./shell.tsx";
import { ErrorMessage } from "./ui/error-message.tsx";
import { Screen } from "./ui/screen.tsx";

const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : typeof value === "number" ? String(value) : undefined;

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => (
    <Screen title="Page not found">
      <p>
        <Link to="/">Go to the overview</Link>
      </p>
    </Screen>
  ),
});
const under = { getParentRoute: () => root } as const;

const overview = createRoute({ ...under, path: "/", component: OverviewScreen });
const runs = createRoute({
  ...under,
  path: "/runs",
  component: RunsScreen,
  validateSearch: (search: Record<string, unknown>): RunSearch => ({
    status: text(search.status),
    workflow: text(search.workflow),
    labels: cleanLabels(text(search.labels)) ?? labelsOfOlder(text(search.label)),
    prefix: text(search.prefix),
    since: text(search.since),
    until: text(search.until),
    inDoubt: search.inDoubt === true ? true : undefined,
  }),
});
const run = createRoute({
  ...under,
  path: "/runs/$id",
  component: RunScreen,
  validateSearch: (search: Record<string, unknown>): { tab?: RunTab | undefined } => ({
    tab: runTabs.find((tab) => tab === search.tab),
  }),
});
const attention = createRoute({ ...under, path: "/attention", component: AttentionScreen });
const gates = createRoute({ ...under, path: "/gates", component: GatesScreen });
const leases = createRoute({ ...under, path: "/leases", component: LeasesScreen });
const queues = createRoute({ ...under, path: "/queues", component: QueuesScreen });
const queue = createRoute({ ...under, path: "/queues/$name", component: QueueScreen });
const builds = createRoute({ ...under, path: "/builds", component: BuildsScreen });
const sinks = createRoute({ ...under, path: "/sinks", component: SinksScreen });
const sink = createRoute({ ...under, path: "/sinks/$name", component: SinkScreen });
const byStatus = (search: Record<string, unknown>): { status?: string | undefined } => ({
  status: text(search.status),
});
const effects = createRoute({
  ...under,
  path: "/effects",
  component: () => <EffectsScreen of="effect" />,
  validateSearch: byStatus,
});
const obligations = createRoute({
  ...under,
  path: "/obligations",
  component: () => <EffectsScreen of="compensation" />,
  validateSearch: byStatus,
});
const timers = createRoute({ ...under, path: "/timers", component: TimersScreen });
const values = createRoute({ ...under, path: "/values", component: ValuesScreen });
const budgets = createRoute({ ...under, path: "/budgets", component: BudgetsScreen });
const health = createRoute({ ...under, path: "/health", component: HealthScreen });
const audit = createRoute({ ...under, path: "/audit", component: AuditScreen });

export const router = createRouter({
  routeTree: root.addChildren([
    ...[overview, runs, run, attention, gates, leases, queues, queue, effects, obligations, timers, values, budgets],
    ...[builds, sinks, sink, health, audit],
  ]),
  defaultPreload: false,
  // One boundary per screen: an error in one leaves the navigation and the other screens usable.
  defaultErrorComponent: ({ error, reset }) => (
    <Screen title="This screen failed to render">
      <ErrorMessage error={error} />
      <button type="button" onClick={reset}>
        Try again
      </button>
    </Screen>
  ),
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
