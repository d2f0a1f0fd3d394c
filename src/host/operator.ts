import { defined } from "../base/defined.ts";
import { isRemote, type RemoteStore } from "../client/remote.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import { eraseRun } from "../operator/erase.ts";
import { laterMs } from "../operator/later.ts";
import { erasing, localOperator, type Operator } from "../operator/operator.ts";
import { resolutionToWire } from "../operator/resolve.ts";
import { isSealedStore } from "../seal/sealed-store.ts";
import type { Store } from "../store/contract/store.ts";

/** Embedded, this process does the action. Connected, the server does: it requires and records an operator's token. */
export const createOperator = (deps: ReactorDeps): Operator =>
  isRemote(deps.store) ? remoteOperator(deps.store, deps) : localOperator(deps);

function remoteOperator(store: RemoteStore, deps: ReactorDeps): Operator {
  const { tenant } = deps;
  const { remote, intake } = store;
  return {
    async cancel(run, reason) {
      await intake.cancel(tenant, run, reason); // the server ends a run that never started
    },
    async resolve({ run: id, pos, sub = 0, resolution, by, reason }) {
      const wire = await sealedResolution(store, tenant, id, resolutionToWire(id, resolution));
      const body = { resolution: wire, by, reason };
      await remote.call("effects.resolve", { params: { id, pos, sub }, body });
    },
    async redrive(id, { by, reason, in: after }) {
      await remote.call("runs.redrive", {
        params: { id },
        body: { by, reason, ...(after !== undefined && { inMs: laterMs(`redrive of run ${id}`, after) }) },
      });
    },
    async preempt(target, { by, reason, onlyStale }) {
      const body = { by, reason, ...defined({ onlyStale }) };
      if ("name" in target) await remote.call("leases.takeover", { params: { name: target.name }, body });
      else await remote.call("runs.takeover", { params: { id: target.run }, body });
    },
    async changeSink(name, change, { by, reason }) {
      const params = { name };
      if (change.to === "rewind") {
        await remote.call("sinks.rewind", { params, body: { by, reason, event: change.event } });
      } else await remote.call(`sinks.${change.to}`, { params, body: { by, reason } });
    },
    async moveRuns({ from, to, run, above, limit, withinMs, by, reason }) {
      const body = { to, by, reason, ...defined({ run, above, limit, withinMs }) };
      return remote.call("builds.move", { params: { build: from }, body });
    },
    erase: (run, request) => eraseRun(erasing(deps), run, request), // each part is a call of its own
    async forkPlan(id, at) {
      return remote.call("runs.forkPlan", { params: { id }, query: defined({ at }) });
    },
    async fork(id, { repeat, keepCompensated, ...request }) {
      const body = {
        ...request,
        ...(repeat !== undefined && { repeat: [...repeat] }),
        ...(keepCompensated !== undefined && { keepCompensated: [...keepCompensated] }),
      };
      return (await remote.call("runs.fork", { params: { id }, body })).id;
    },
  };
}

/** The server has no key: what the operator gives is encoded here. */
async function sealedResolution<R extends object>(store: Store, tenant: string, run: string, wire: R): Promise<R> {
  if (!isSealedStore(store)) return wire;
  const sealed = { ...wire } as Record<string, unknown>;
  for (const field of ["value", "error"]) {
    if (sealed[field] === undefined) continue;
    sealed[field] = await store.sealed.seal(tenant, run, "effect.settled", field, sealed[field]);
  }
  return sealed as R;
}
