import { isTapeError } from "../model/errors.ts";
import { mayDo } from "../protocol/route.ts";
import { readHolders } from "../store/read-all.ts";
import type { Call, ServerDeps } from "./handler-types.ts";

/** Runs that no process has claimed for this long are listed. */
const unservedMs = 10_000;

/**
 * Health for operators and alerts: whether the store responds. A caller that may read the tenant also sees what blocks
 * the feed, which reactors have due work, who holds the singletons, and unserved workflows.
 */
export function healthOn(deps: ServerDeps): (who: Call) => Promise<Record<string, unknown>> {
  const pending = new Map<string | undefined, Promise<Record<string, unknown>>>();
  return (who) => {
    const of = who.named ? `${mayDo(who.role, "operator")} ${who.tenant}` : undefined;
    // Calls are unlimited: concurrent calls share one check.
    const check = pending.get(of) ?? healthOf(deps, who).finally(() => pending.delete(of));
    pending.set(of, check);
    return check;
  };
}

async function healthOf({ store, service }: ServerDeps, who: Call): Promise<Record<string, unknown>> {
  const status = service.draining ? "draining" : "ok";
  if (!who.named) return bareHealth({ store }, status);
  const about = { version: service.version, replica: service.label, backend: store.backend };
  try {
    const { read } = store;
    const [health, settings] = await Promise.all([store.health(), read.settings()]);
    const { schema, epoch, durable } = settings;
    return {
      status,
      ...about,
      store: { reachable: true, schema, epoch, durable },
      feed: { blockedBy: blockerFor(who, health.feedBlockedBy) ?? null },
      ...(await ofTenant({ store }, who.tenant)),
    };
  } catch (error) {
    if (!isTapeError(error)) throw error;
    return { status: "store_unreachable", ...about, store: { reachable: false, code: error.code } };
  }
}

/** Callers without a credential see only whether the server works. */
async function bareHealth({ store }: Pick<ServerDeps, "store">, status: string): Promise<Record<string, unknown>> {
  try {
    await store.health();
    return { status };
  } catch (error) {
    if (!isTapeError(error)) throw error;
    return { status: "store_unreachable" };
  }
}

/** Only operators see which session blocks the feed: it may belong to another program or tenant. */
export function blockerFor({ role }: Pick<Call, "role">, blocker: string | undefined): string | undefined {
  return blocker === undefined || mayDo(role, "operator") ? blocker : "an open transaction";
}

async function ofTenant({ store }: Pick<ServerDeps, "store">, tenant: string): Promise<Record<string, unknown>> {
  const [names, agenda, unserved] = await Promise.all([
    readHolders(store.read, tenant),
    store.read.agenda(tenant),
    store.read.unserved([], unservedMs, tenant),
  ]);
  const singletons = names.map(({ name, label, token, reason, heldMs, remainingMs, progressAgoMs }) => ({
    ...{ name, holder: label, token: String(token), reason, heldMs, remainingMs, progressAgoMs },
  }));
  const due = agenda.filter(({ dueInMs }) => dueInMs === 0).map(({ reactor }) => reactor ?? "stale");
  return { due, singletons, unserved };
}
