import { defined } from "../base/defined.ts";
import type { LeaseTarget } from "../model/lease.ts";
import { targetNotFound } from "../model/not-found.ts";
import type { ClaimOps } from "../store/contract/store.ts";
import { staleError } from "../store/validate/arguments.ts";
import { claimOf } from "./builds.ts";
import { assertOwn, inParts, isOwn, type RemoteContext } from "./context.ts";

/** The heartbeat retries soon on its own, so a failed renewal must be reported early. */
const renewMs = 2_000;

export function remoteClaim(deps: RemoteContext): ClaimOps {
  const { caller } = deps;
  return {
    async acquire(tenant, request) {
      if (!isOwn(deps, tenant)) throw absentTarget(deps, tenant, request.target);
      const { target, nonce, expect, reason, by, auditReason } = request;
      const body = {
        target,
        claimant: defined(request.claimant),
        nonce,
        expect,
        ...defined({ reason, by, auditReason }),
      };
      return caller.call("store.acquire", { body });
    },
    async find(request) {
      const { tenant, claimant, staleOf, staleLimit, workflows, kind, share, preload, queues, only, build } = request;
      if (!isOwn(deps, tenant)) return [];
      const { nextReactor, limit, nonce } = request;
      const body = {
        ...{ claimant: defined(claimant), nextReactor, staleOf: [...staleOf], limit, nonce },
        ...defined({
          staleLimit,
          kind,
          preload,
          only,
          workflows: workflows && [...workflows],
          build: build && claimOf(build),
          queues: queues?.map(({ name, room }) => ({ name, room })),
          share: share && { ...share, busy: [...share.busy] },
        }),
      };
      return (await caller.call("store.find", { body })).terms;
    },
    // A holder's trust counts from before this call, however often it is sent: a late response never extends it.
    async renew(renewals) {
      const ours = renewals.filter(({ fence }) => isOwn(deps, fence.tenant));
      const request = ours.map(({ fence, progress, progressAgoMs, progressNote }) =>
        defined({ fence, progress, progressAgoMs, progressNote }),
      );
      const parts = await inParts(request, (part) =>
        caller.call("store.renew", { body: { renewals: part } }, { retryForMs: renewMs }),
      );
      const verdicts = parts.flatMap((part) => part.results)[Symbol.iterator]();
      return renewals.map(({ fence }) =>
        isOwn(deps, fence.tenant) ? verdicts.next().value! : { ok: false, error: staleError(fence) },
      );
    },
    async callbackSecret(fence) {
      if (!isOwn(deps, fence.tenant)) throw staleError(fence);
      return (await caller.call("store.callbackSecret", { body: { fence } })).secret;
    },
    async pause(tenant, name, paused, by, why) {
      assertOwn(deps, tenant);
      await caller.call(paused ? "leases.pause" : "leases.resume", { params: { name }, body: { reason: why, by } });
    },
    restored: (reason, by) => caller.call("store.restored", { body: { reason, ...defined({ by }) } }),
  };
}

/** A named lease is created when it is first requested, which no caller may do in another tenant. */
function absentTarget(deps: RemoteContext, tenant: string, target: LeaseTarget): unknown {
  if ("name" in target) assertOwn(deps, tenant);
  return targetNotFound(target);
}
