import { defined } from "../../base/defined.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { ItemResult, Term } from "../../model/lease.ts";
import { mayDo } from "../../protocol/route.ts";
import type { store as routes } from "../../protocol/routes/store.ts";
import { fenceOf } from "../../protocol/shapes.ts";
import type { AppendRequest, CreateResult, WakeHint } from "../../store/contract/store.ts";
import { Authority } from "../authority.ts";
import { actorOf, type HandlersOf, listed, type ServerDeps } from "../handler-types.ts";
import { streamWakeHints } from "../wake-stream.ts";

/** Groups consecutive items of the same call. */
function groupByCall<Item extends { readonly call: number }>(items: readonly Item[]): Item[][] {
  const found: Item[][] = [];
  for (const item of items) {
    if (found.at(-1)?.[0]?.call === item.call) found.at(-1)!.push(item);
    else found.push([item]);
  }
  return found;
}

/** The store contract for the credential's tenant; the store compares that tenant with every target of a call. */
export function storeHandlers(deps: ServerDeps): HandlersOf<typeof routes> {
  const authority = new Authority(deps.store.read);
  return {
    ...intakeHandlers(deps, authority),
    ...claimHandlers(deps),
    ...fencedHandlers(deps, authority),
    ...readHandlers(deps),
  };
}

function intakeHandlers({ store: { intake }, service, turns }: ServerDeps, authority: Authority) {
  return {
    async "store.create"({ body }, who) {
      const { tenant } = who;
      const requested = body.calls.map(({ specs, first }) => ({ specs: authority.specs(who, specs), first }));
      const each = requested.flatMap(({ specs, first }, call) => specs.map((spec) => ({ call, spec, first })));
      const results = await turns.each(tenant, each, async (slice) => {
        // All are started before any is awaited: they share commits.
        const all = groupByCall(slice).map((specs) =>
          intake.createRuns(
            tenant,
            specs.map(({ spec }) => spec),
            specs[0]?.first,
          ),
        );
        return (await Promise.all(all)).flat();
      });
      const calls = requested.map((): ItemResult<CreateResult>[] => []);
      for (const [k, result] of results.entries()) calls[each[k]!.call]!.push(result);
      const created = results.flatMap((result) => (result.ok ? [result] : []));
      service.granted(created.flatMap(({ term }) => (term === undefined ? [] : [term])));
      return { calls: calls.map((ofCall) => ({ results: ofCall })) };
    },
    async "store.evidence"({ body }, who) {
      return who.intake.leaveEvidence(who.tenant, body.attempt, body.evidence);
    },
    async "store.fireTimer"({ body }, who) {
      return { fired: await who.intake.fireTimer(who.tenant, body) };
    },
    async "store.fireSchedule"({ body }, who) {
      const { id, version, nextAt, runs, spec } = body;
      return { fired: await who.intake.fireSchedule(who.tenant, id, version, nextAt, runs, spec) };
    },
    async "store.reportProcess"({ body: report }, { tenant }) {
      await intake.reportProcess(tenant, report);
      return {};
    },
    "store.reportBuild": ({ body: { build, workflows } }, { tenant }) => intake.reportBuild(tenant, build, workflows),
    async "store.removeProcess"({ body: { owner } }, { tenant }) {
      await intake.removeProcess(tenant, owner);
      return {};
    },
  } satisfies Partial<HandlersOf<typeof routes>>;
}

function claimHandlers({ store: { claim }, service }: ServerDeps) {
  const countGranted = (tenant: string, terms: readonly Term[]): void => {
    // The store grants no tenant another's lease. If it ever did, the caller must not receive it.
    const foreign = terms.find((term) => term.tenant !== tenant);
    if (foreign !== undefined) {
      throw new TapeError("TAPE_INVARIANT", "the store granted another tenant's lease", { journal: foreign.journal });
    }
    service.granted(terms);
    service.queues.admitted(tenant, terms);
  };
  return {
    async "store.find"({ body }, { tenant }) {
      const terms = await claim.find({ ...body, tenant });
      countGranted(tenant, terms);
      return { terms };
    },
    async "store.acquire"({ body }, who) {
      if (body.expect === "any" && !mayDo(who.role, "operator")) {
        throw new TapeError("TAPE_FORBIDDEN", "to take over a live holder's lease needs the role admin", {
          needs: "admin",
        });
      }
      const by = body.by === undefined ? {} : { by: actorOf(who, body.by) };
      const answer = await claim.acquire(who.tenant, { ...body, ...by });
      if (answer.ok) countGranted(who.tenant, [answer.term]);
      return answer;
    },
    async "store.renew"({ body }, { tenant }) {
      const renewals = body.renewals.map(({ fence, ...rest }) => ({ ...rest, fence: fenceOf(tenant, fence) }));
      const verdicts = await claim.renew(renewals);
      service.renewed(verdicts);
      return { results: verdicts };
    },
  } satisfies Partial<HandlersOf<typeof routes>>;
}

function fencedHandlers({ store: { fenced }, turns }: ServerDeps, authority: Authority) {
  return {
    async "store.append"({ body }, who) {
      const sent = body.batch.map(({ fence, entry }) => [fenceOf(who.tenant, fence), entry as AppendRequest] as const);
      const judged = await authority.judged(who, sent);
      const good = judged.flatMap((item) => (isTapeError(item) ? [] : [item]));
      const written = await turns.each(who.tenant, good, (slice) => fenced.appendAll(slice));
      let next = 0;
      return {
        results: judged.map((item) => (isTapeError(item) ? { ok: false as const, error: item } : written[next++]!)),
      };
    },
  } satisfies Partial<HandlersOf<typeof routes>>;
}

function readHandlers(deps: ServerDeps) {
  const { read } = deps.store;
  return {
    async "store.dueTimers"({ body: { limit } }, { tenant }) {
      return { timers: await read.dueTimers(limit, tenant) };
    },
    async "store.dueSchedules"({ body: { limit } }, { tenant }) {
      return { schedules: await read.dueSchedules(limit, tenant) };
    },
    async "store.agenda"({ body: { workflows, queues, build } }, { tenant }) {
      const items = await read.agenda(tenant, workflows, queues, build);
      return { items: items.map(({ reactor, dueInMs, lateMs }) => ({ reactor, dueInMs, lateMs })) };
    },
    "store.due": async ({ body: { reactor, cap } }, { tenant }) => ({ due: await read.due(reactor, cap, tenant) }),
    async "store.unserved"({ body: { workflows, minLagMs, build } }, { tenant }) {
      return { unserved: await read.unserved(workflows, minLagMs, tenant, build) };
    },
    async "store.progress"({ body: { ids } }, { tenant }) {
      return { runs: await read.progress(tenant, ids) };
    },
    async "store.journal"({ body: { target, ...page } }, { tenant }) {
      const limit = deps.turns.rows(page.limit);
      return listed("records", await read.journal(tenant, target, { ...page, ...defined({ limit }) }));
    },
    async "store.lease"({ body: { target } }, { tenant }) {
      return { lease: await read.lease(tenant, target) };
    },
    async "store.terms"({ body: { target } }, { tenant }) {
      return { terms: await read.terms(tenant, target) };
    },
    async "store.wakeHints"(_call, { tenant, signal }): Promise<AsyncIterable<readonly WakeHint[]>> {
      return streamWakeHints(deps, tenant, signal);
    },
  } satisfies Partial<HandlersOf<typeof routes>>;
}
