import { defined } from "../../base/defined.ts";
import { processesByBuild } from "../../engine/served.ts";
import type { builds as routes } from "../../protocol/routes/builds.ts";
import { mapPage } from "../../store/page.ts";
import { auditInfoOf, type HandlersOf, listed, type ServerDeps } from "../handler-types.ts";

export function buildHandlers({ store, operators }: ServerDeps): HandlersOf<typeof routes> {
  const { read } = store;
  return {
    async "builds.list"({ query }, { tenant }) {
      const [page, processes] = await Promise.all([read.builds(tenant, query), processesByBuild(store, tenant)]);
      const shown = mapPage(page, (view) => ({
        ...view,
        workflows: [...view.workflows],
        processes: processes.get(view.build) ?? 0,
      }));
      return listed("builds", shown);
    },
    async "builds.runs"({ params: { build }, query }, { tenant }) {
      return listed("runs", await read.buildRuns(tenant, build, query));
    },
    async "builds.drained"({ params: { build } }, { tenant }) {
      return { drained: await read.isDrained(tenant, build) };
    },
    async "builds.current"({ params: { build }, body }, who) {
      const view = await who.intake.setCurrentBuild(who.tenant, build, auditInfoOf(who, body));
      return { ...view, workflows: [...view.workflows] };
    },
    async "builds.move"({ params: { build: from }, body }, who) {
      const { to, run, above: after, limit, withinMs } = body;
      const request = { from, to, ...defined({ run, above: after, limit, withinMs }), ...auditInfoOf(who, body) };
      const { runs, above } = await operators.of(who.tenant).moveRuns(request);
      return { runs: [...runs], ...defined({ above }) };
    },
  };
}
