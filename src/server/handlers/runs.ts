import { defined } from "../../base/defined.ts";
import { TapeError } from "../../model/errors.ts";
import { notFound } from "../../model/not-found.ts";
import type { runs } from "../../protocol/routes/runs.ts";
import { queueOfStart } from "../../sdk/start-by-name.ts";
import { assertGateValue, assertInput } from "../../sdk/workflow.ts";
import type { ReadOps, RunFilter, RunProgress, RunSpec, RunView } from "../../store/contract/store.ts";
import { concernsJournal } from "../../store/follow.ts";
import { runBatch } from "../../store/validate/arguments.ts";
import { stamped, started } from "../authority.ts";
import { auditInfoOf, type Call, type HandlersOf, listed, type ServerDeps } from "../handler-types.ts";
import { follow, streamPage } from "../streams.ts";

/** A proxy may time out after a minute; a caller that waits longer calls again. */
export const maxWaitMs = 30_000;
/** A larger tree is not readable in one view. */
const maxInTree = 500;

export function runHandlers(deps: ServerDeps): HandlersOf<typeof runs> {
  return { ...readHandlers(deps), ...writeHandlers(deps) };
}

function readHandlers(deps: ServerDeps) {
  const { store, clock } = deps;
  const { read } = store;
  const existing = (tenant: string, id: string) => existingRun(read, tenant, id);
  return {
    async "runs.list"({ query }, { tenant }) {
      return listed("runs", await read.runs(tenant, query as RunFilter));
    },
    "runs.get": ({ params }, { tenant }) => existing(tenant, params.id),
    async "runs.result"({ params: { id }, query }, who) {
      const until = clock.mono() + Math.min(query.waitMs ?? 0, maxWaitMs);
      let run = await progressOf(read, who.tenant, id);
      if (run.ended || clock.mono() >= until) return run;
      who.waits();
      await waitFor(deps, who, run.journal, until, async () => {
        run = await progressOf(read, who.tenant, id);
        return run.ended || (run.status === "STUCK" && run.idle);
      });
      return run;
    },
    async "runs.journal"({ params: { id }, query }, { tenant }) {
      await existing(tenant, id);
      return listed("records", await read.journal(tenant, { run: id }, query));
    },
    async "runs.follow"({ params: { id }, query }, { tenant, signal }) {
      const { journal } = await existing(tenant, id);
      let from = query.from ?? 1;
      return follow({
        ...{ store, clock, signal },
        concerns: concernsJournal(journal),
        page: async () => {
          // Checked before the records are read: records read after the end are complete.
          const ended = (await read.run(tenant, id))?.endedAt !== null;
          const records = await read.journal(tenant, { run: id }, { from, limit: streamPage });
          from = (records.at(-1)?.seq ?? from - 1) + 1;
          return records.length === 0 && ended ? "end" : records;
        },
      });
    },
    async "runs.terms"({ params: { id } }, { tenant }) {
      await existing(tenant, id);
      return { terms: await read.terms(tenant, { run: id }) };
    },
    async "runs.budgets"({ params: { id } }, { tenant }) {
      return { budgets: await read.budgets(tenant, id) };
    },
    async "runs.tree"({ params: { id }, query }, { tenant }) {
      const { root } = await existing(tenant, id);
      const limit = Math.min(query.limit ?? maxInTree, maxInTree);
      const top = (await read.lease(tenant, { journal: root }))?.name ?? id;
      const [first, below, obligations] = await Promise.all([
        existing(tenant, top),
        read.runs(tenant, { below: root, limit }),
        read.effects(tenant, { root, limit: maxInTree }),
      ]);
      const more = below.length === limit || obligations.length === maxInTree;
      return { root: top, runs: [first, ...below].map(nodeOf), obligations, more };
    },
  } satisfies Partial<HandlersOf<typeof runs>>;
}

export async function existingRun(read: ReadOps, tenant: string, id: string): Promise<RunView> {
  const run = await read.run(tenant, id);
  if (run === undefined) throw notFound("run", id);
  return run;
}

export async function progressOf(read: ReadOps, tenant: string, id: string): Promise<RunProgress> {
  const [run] = await read.progress(tenant, [id]);
  if (run === undefined) throw notFound("run", id);
  return run;
}

function writeHandlers(deps: ServerDeps) {
  const { operators, runner } = deps;
  return {
    ...startHandlers(deps),
    async "runs.signal"({ params: { id }, body }, who) {
      await assertGateValue(runner, body.name, body.value);
      return who.intake.signal(who.tenant, id, stamped(who, body));
    },
    async "runs.cancel"({ params: { id }, body }, who) {
      const noted = await who.intake.cancel(who.tenant, id, stamped(who, body));
      await operators.endUnstarted(who.tenant, id);
      return noted;
    },
    async "runs.takeover"({ params: { id }, body }, who) {
      await operators.of(who.tenant).preempt({ run: id }, { ...body, ...auditInfoOf(who, body) });
      return {};
    },
    async "runs.redrive"({ params: { id }, body }, who) {
      await operators.of(who.tenant).redrive(id, { ...auditInfoOf(who, body), ...defined({ in: body.inMs }) });
      return {};
    },
  } satisfies Partial<HandlersOf<typeof runs>>;
}

function startHandlers({ store, clock, random, runner, served, turns }: ServerDeps) {
  return {
    async "runs.start"({ body }, who) {
      const { id = who.key ?? random.uuid(clock.wall()), by, reason, ...spec } = body;
      await assertInput(runner, spec.workflow, spec.input);
      for (const { name, value } of spec.signals ?? []) await assertGateValue(runner, name, value);
      const [created] = await who.intake.createRuns(who.tenant, [
        started(who, { ...spec, ...queueOfStart(runner, spec), id } as RunSpec),
      ]);
      if (created === undefined) throw new TapeError("TAPE_INVARIANT", "a run was neither created nor rejected");
      if (!created.ok) throw created.error;
      const { journal, fresh, run = id } = created;
      if (reason !== undefined) {
        const detail = { run, workflow: spec.workflow, fresh };
        await store.intake.recordAudit(
          who.tenant,
          "run.start",
          auditInfoOf(who, { reason, ...defined({ by }) }),
          detail,
        );
      }
      const hint = fresh ? await served.hint(who.tenant, spec.workflow) : undefined;
      return { id: run, journal, fresh, ...defined({ hint }) };
    },
    async "runs.startAll"({ body }, who) {
      const checked = await runBatch(body.runs, store.limits, async (spec) => {
        await assertInput(runner, spec.workflow, spec.input);
        for (const { name, value } of spec.signals ?? []) await assertGateValue(runner, name, value);
        return { spec: started(who, { ...spec, ...queueOfStart(runner, spec) } as RunSpec) };
      });
      const specs = checked.flatMap((result) => (result.ok ? [result.spec] : []));
      const created = await turns.each(who.tenant, specs, (slice) => store.intake.createRuns(who.tenant, slice));
      let next = 0;
      const results = checked.map((result) => {
        const verdict = result.ok ? created[next++]! : result;
        if (!verdict.ok) return verdict;
        const { journal, fresh, run = result.ok ? result.spec.id : "" } = verdict;
        return { ok: true as const, id: run, journal, fresh };
      });
      return { results };
    },
  } satisfies Partial<HandlersOf<typeof runs>>;
}

function nodeOf(run: RunView) {
  const { id, journal, parent, workflow, status, cause, outcome, error, createdAt, endedAt } = run;
  // A child's id is its parent's id and the position of the operation that started it.
  const [, pos] = (parent === null ? null : /\.(\d{1,9})$/.exec(id)) ?? [];
  const parentPos = pos === undefined ? null : Number(pos);
  const node = { id, journal, parent, parentPos, workflow, status, cause, outcome, createdAt, endedAt };
  return { ...node, ...defined({ error }) };
}

/** Waits until `done` returns true, the time is over, or the caller disconnects. */
export async function waitFor(
  { store, clock }: ServerDeps,
  { signal }: Call,
  journal: number,
  until: number,
  done: () => Promise<boolean>,
): Promise<void> {
  const timeout = new AbortController();
  const cancel = clock.after(until - clock.mono(), () => timeout.abort());
  const checks = follow({
    ...{ store, clock },
    signal: AbortSignal.any([signal, timeout.signal]),
    concerns: concernsJournal(journal),
    page: async () => ((await done()) ? ("end" as const) : []),
  });
  try {
    for await (const _ of checks);
  } finally {
    cancel();
  }
}
