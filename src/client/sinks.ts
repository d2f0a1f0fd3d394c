import { defined } from "../base/defined.ts";
import { notFound } from "../model/not-found.ts";
import type { CheckpointOps, EventReadOps, EventWriteOps } from "../store/contract/store.ts";
import { pageOf } from "../store/page.ts";
import { staleError } from "../store/validate/arguments.ts";
import { inParts, isOwn, type RemoteContext } from "./context.ts";

/** What a fan-out writes under its fence; the store behind the server compares it. */
export function remoteCheckpoints(deps: RemoteContext): CheckpointOps {
  const { caller } = deps;
  return {
    async checkpoint(fence, text) {
      if (!isOwn(deps, fence.tenant)) throw staleError(fence);
      await caller.call("store.checkpoint", { body: { fence, text } });
    },
    async deadLetter(fence, { event, journal, seq, inbox, kind, attempts, code, error }) {
      if (!isOwn(deps, fence.tenant)) throw staleError(fence);
      const letter = { event, journal, seq, inbox, kind, attempts, code, error };
      await caller.call("store.deadLetter", { body: { fence, letter } });
    },
    async letterSent(fence, event) {
      if (!isOwn(deps, fence.tenant)) throw staleError(fence);
      await caller.call("store.letterSent", { body: { fence, event } });
    },
  };
}

/** `key` as in `remoteIntake`. */
export function remoteEventWrites(deps: RemoteContext, key: string | undefined): EventWriteOps {
  return {
    async settleLetters(tenant, sink, to, events, { reason, by }) {
      if (!isOwn(deps, tenant)) throw notFound("sink", sink);
      const body = { reason, by, ...defined({ events: events && [...events] }) };
      const route = to === "REPLAY" ? "sinks.replay" : "sinks.discard";
      return (await deps.caller.call(route, { params: { name: sink }, body }, { key })).letters;
    },
  };
}

export function remoteEventReads(deps: RemoteContext): EventReadOps {
  const { caller } = deps;
  return {
    async deadLetters(tenant, sink, { state, after, limit } = {}) {
      if (!isOwn(deps, tenant)) return [];
      const query = defined({ state, after, limit });
      const { letters, more = false } = await caller.call("sinks.deadLetters", { params: { name: sink }, query });
      return pageOf(letters, more);
    },
    async subjects(tenant, journals) {
      if (!isOwn(deps, tenant) || journals.length === 0) return [];
      const parts = inParts(journals, (part) => caller.call("store.subjects", { body: { journals: part } }));
      return (await parts).flatMap(({ subjects }) => subjects);
    },
    async sinks(tenant, { above, limit } = {}) {
      if (!isOwn(deps, tenant)) return [];
      const { sinks, more = false } = await caller.call("sinks.list", { query: defined({ above, limit }) });
      return pageOf(sinks, more);
    },
  };
}
