import type { Term } from "../../src/model/lease.ts";
import type { StartSignal, Store } from "../../src/store/contract/store.ts";

const isSigned = (signal: StartSignal | undefined): boolean => signal?.via !== undefined;

/**
 * Joins the stores of several credentials: a credential has one tenant, the suite has many. Each call goes to the store of
 * the tenant that it or its fence names. What no credential may do (read the feed of all tenants or a token's hash, store
 * its own hash, prune without an operator) goes to the store behind the server.
 */
export function byTenant(home: Store, behind: Store, storeOf: (tenant: string) => Promise<Store>): Store {
  const tenants = new Set<string>();
  const of = (tenant: unknown): Promise<Store> => {
    const name = typeof tenant === "string" && tenant !== "" && tenant.length <= 512 && tenant.isWellFormed();
    return name && !tenant.includes("\0") ? storeOf(tenant) : Promise.resolve(home);
  };
  /** Every method with the tenant first, sent to that tenant's store. */
  const routed = <G extends "intake" | "claim" | "read">(group: G): Store[G] =>
    Object.fromEntries(
      Object.keys(home[group]).map((name) => [
        name,
        async (tenant: unknown, ...rest: unknown[]) => {
          const calls = (await of(tenant))[group] as unknown as Record<string, (...args: unknown[]) => unknown>;
          return calls[name]!(tenant, ...rest);
        },
      ]),
    ) as unknown as Store[G];
  const { putToken, revokeToken, touchToken, prune, recordAudit } = behind.intake;
  const intake = routed("intake");
  return {
    ...home,
    once: (key) => behind.once(key),
    health: () => behind.health(),
    intake: {
      ...intake,
      ...{ putToken, revokeToken, touchToken, prune, recordAudit },
      // Through which credential a note comes is the server's to say.
      signal: (tenant, run, signal) => (signal?.via === undefined ? intake : behind.intake).signal(tenant, run, signal),
      cancel: (tenant, run, ask) => (ask?.via === undefined ? intake : behind.intake).cancel(tenant, run, ask),
      async createRuns(tenant, specs, first) {
        const signed = Array.isArray(specs) && specs.some((spec) => spec?.signals?.some?.(isSigned));
        const verdicts = await (signed ? behind : await of(tenant)).intake.createRuns(tenant, specs, first);
        tenants.add(tenant);
        return verdicts;
      },
    },
    claim: {
      ...routed("claim"),
      restored: (...args) => home.claim.restored(...args),
      async acquire(tenant, request) {
        const answer = await (await of(tenant)).claim.acquire(tenant, request);
        tenants.add(tenant);
        return answer;
      },
      async find(request) {
        const found: Term[] = [];
        const named = request?.tenant === undefined ? [undefined, ...tenants] : [request.tenant];
        for (const tenant of named) {
          const rest = found.length === 0 ? request : { ...request, limit: request.limit - found.length };
          if (found.length > 0 && rest.limit < 1) break;
          const terms = await (await of(tenant)).claim.find(rest);
          found.push(...terms.filter(({ journal }) => !found.some((other) => other.journal === journal)));
        }
        return found;
      },
      renew: async (renewals) => (await of(renewals?.[0]?.fence?.tenant)).claim.renew(renewals),
    },
    fenced: {
      append: async (fence, entry) => (await of(fence?.tenant)).fenced.append(fence, entry),
      appendAll: async (batch) => (await of(batch?.[0]?.[0]?.tenant)).fenced.appendAll(batch),
      appendChunks: async (batch) => (await of(batch?.[0]?.[0]?.tenant)).fenced.appendChunks(batch),
      putBlob: async (fence, part) => (await of(fence?.tenant)).fenced.putBlob(fence, part),
      checkpoint: async (fence, text) => (await of(fence?.tenant)).fenced.checkpoint(fence, text),
      deadLetter: async (fence, letter) => (await of(fence?.tenant)).fenced.deadLetter(fence, letter),
      letterSent: async (fence, event) => (await of(fence?.tenant)).fenced.letterSent(fence, event),
    },
    read: {
      ...routed("read"),
      dueTimers: async (limit, tenant) => (await of(tenant)).read.dueTimers(limit, tenant),
      dueSchedules: async (limit, tenant) => (await of(tenant)).read.dueSchedules(limit, tenant),
      due: async (reactor, cap, tenant) => (await of(tenant)).read.due(reactor, cap, tenant),
      async unserved(workflows, minLagMs, tenant, build) {
        return (tenant === undefined ? behind : await of(tenant)).read.unserved(workflows, minLagMs, tenant, build);
      },
      async feed(cursor, limit, tenant) {
        return (tenant === undefined ? behind : await of(tenant)).read.feed(cursor, limit, tenant);
      },
      async frontier(tenant) {
        return (tenant === undefined ? behind : await of(tenant)).read.frontier(tenant);
      },
      async audit(tenant, page) {
        return (tenant === undefined ? behind : await of(tenant)).read.audit(tenant, page);
      },
      streamAccess: async (token) => (await of([...tenants][0])).read.streamAccess(token),
      token: (id) => behind.read.token(id),
      tokens: (tenant, page) => behind.read.tokens(tenant, page),
    },
  };
}
