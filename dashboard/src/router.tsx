import { createRootRoute, createRoute, createRouter, Link } from "@tanstack/react-router";
import { AttentionScreen } from "./screens/attention-screen.tsx";
import { AuditScreen } from "./screens/audit-screen.tsx";
import { BudgetsScreen } from "./screens/budgets-screen.tsx";
import { EffectsScreen } from "./screens/effects-screen.tsx";
import { GatesScreen } from "./screens/gates-screen.tsx";
import { HealthScreen } from "./screens/health-screen.tsx";
import { LeasesScreen } from "./screens/leases-screen.tsx";
import { OverviewScreen } from "./screens/overview-screen.tsx";
import { RunScreen, type RunTab, runTabs } from "./screens/run-screen.tsx";
import { RunsScreen } from "./screens/runs-screen.tsx";
import { TimersScreen } from "./screens/timers-screen.tsx";
import { ValuesScreen } from "./screens/values-screen.tsx";
import { Shell } from "./shell.tsx";
import { ErrorMessage } from "./ui/error-message.tsx";
import { Screen } from "./ui/screen.tsx";

const text = (given: unknown): string | undefined =>
  typeof given === "string" && given !== "" ? given : typeof given === "number" ? String(given) : undefined;

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => (
    <Screen title="There is no such page">
      <p>
        <Link to="/">To the overview</Link>
      </p>
    </Screen>
  ),
});
const at = { getParentRoute: () => root } as const;

const overview = createRoute({ ...at, path: "/", component: OverviewScreen });
export interface RunSearch {
  readonly status?: string | undefined;
  readonly workflow?: string | undefined;
  readonly label?: string | undefined;
  /** What its id begins with. */
  readonly prefix?: string | undefined;
  /** When it started: "24h" back from now, or a moment as "2026-11-16T06:00". */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly doubt?: true | undefined;
}
const runs = createRoute({
  ...at,
  path: "/runs",
  component: RunsScreen,
  validateSearch: (given: Record<string, unknown>): RunSearch => ({
    status: text(given.status),
    workflow: text(given.workflow),
    label: text(given.label),
    prefix: text(given.prefix),
    since: text(given.since),
    until: text(given.until),
    doubt: given.doubt === true ? true : undefined,
  }),
});
const run = createRoute({
  ...at,
  path: "/runs/$id",
  component: RunScreen,
  validateSearch: (given: Record<string, unknown>): { tab?: RunTab | undefined } => ({
    tab: runTabs.find((tab) => tab === given.tab),
  }),
});
const doubt = createRoute({ ...at, path: "/doubt", component: AttentionScreen });
const gates = createRoute({ ...at, path: "/gates", component: GatesScreen });
const leases = createRoute({ ...at, path: "/leases", component: LeasesScreen });
const byStatus = (given: Record<string, unknown>): { status?: string | undefined } => ({ status: text(given.status) });
const effects = createRoute({
  ...at,
  path: "/effects",
  component: () => <EffectsScreen of="effect" />,
  validateSearch: byStatus,
});
const obligations = createRoute({
  ...at,
  path: "/obligations",
  component: () => <EffectsScreen of="compensation" />,
  validateSearch: byStatus,
});
const timers = createRoute({ ...at, path: "/timers", component: TimersScreen });
const values = createRoute({ ...at, path: "/values", component: ValuesScreen });
const budgets = createRoute({ ...at, path: "/budgets", component: BudgetsScreen });
const health = createRoute({ ...at, path: "/health", component: HealthScreen });
const audit = createRoute({ ...at, path: "/audit", component: AuditScreen });

export const router = createRouter({
  routeTree: root.addChildren([
    ...[overview, runs, run, doubt, gates, leases, effects, obligations, timers, values, budgets],
    ...[health, audit],
  ]),
  defaultPreload: false,
  // Around each screen: what one cannot draw leaves the others, and the way to them, alone.
  defaultErrorComponent: ({ error, reset }) => (
    <Screen title="This screen could not be drawn">
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
