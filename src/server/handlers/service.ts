import { defined } from "../../base/defined.ts";
import { TapeError } from "../../model/errors.ts";
import { openApi } from "../../protocol/openapi.ts";
import { type Role, roles } from "../../protocol/route.ts";
import type { service as routes } from "../../protocol/routes/service.ts";
import type { ApiToken } from "../../store/contract/store.ts";
import { isForeign } from "../../store/follow-feed.ts";
import { mapPage, pageOf } from "../../store/page.ts";
import { readQueues } from "../../store/read-queues.ts";
import { actorOf, auditInfoOf, type Call, type HandlersOf, listed, type ServerDeps } from "../handler-types.ts";
import { blockerFor, healthOn } from "../health.ts";
import { follow, streamPage } from "../streams.ts";
import { TenantCensus } from "../tenant-census.ts";
import { lifetimeOf, mintToken } from "../token-auth.ts";

const auditOf = (who: Call, reason: string) => auditInfoOf(who, { reason });

export function serviceHandlers(deps: ServerDeps): HandlersOf<typeof routes> {
  const { store, clock, service, turns } = deps;
  const { read, claim } = store;
  return {
    ...tokenHandlers(deps),
    ...probeHandlers(deps),
    async whoami(_call, { tenant, role, name }) {
      const { backend, transactionBoundMs, limits } = store;
      const { version, codecEndpoint } = service;
      const about = { version, backend, transactionBoundMs, limits: { ...limits } };
      return { tenant, role, name, ...about, ...(service.dev && { dev: true }), ...defined({ codecEndpoint }) };
    },
    async settings() {
      const [settings, now] = await Promise.all([read.settings(), read.now()]);
      return { settings, now };
    },
    async "feed.page"({ query: { cursor, limit } }, who) {
      const { records, blockedBy, ...page } = await read.feed(cursor, turns.rows(limit), who.tenant);
      const blocker = blockerFor(who, blockedBy);
      return { ...page, ...defined({ blockedBy: blocker }), records: [...records] };
    },
    "feed.frontier": async (_call, { tenant }) => ({ cursor: await read.frontier(tenant) }),
    async "feed.follow"({ query }, { tenant, signal }) {
      let { cursor } = query;
      await read.feed(cursor, 1, tenant); // rejects an invalid cursor before the first line
      return follow({
        ...{ store, clock, signal, unannounced: true },
        concerns: (wake) => !isForeign(wake, tenant),
        page: async () => {
          const { records, cursor: next, more = false } = await read.feed(cursor, streamPage, tenant);
          cursor = next;
          return pageOf(records, more);
        },
      });
    },
    async audit({ query }, { tenant }) {
      const entries = await read.audit(tenant, query);
      return { entries: entries.map(({ tenant: _of, ...entry }) => entry) };
    },
    async "runs.prune"({ body: { endedBefore, limit, reason, past } }, who) {
      return { pruned: await who.intake.prune(who.tenant, endedBefore, limit, auditOf(who, reason), past) };
    },
    async "store.restored"({ body: { reason, by } }, who) {
      // It ends the terms of every tenant, so only an admin of the home tenant may do it.
      if (who.tenant !== service.home) {
        throw new TapeError("TAPE_FORBIDDEN", `only an admin of ${service.home} may do this to the whole store`, {
          needs: "admin",
        });
      }
      return claim.restored(reason, actorOf(who, by), who.via, service.home);
    },
  };
}

function tokenHandlers({ store, random, lifetimes }: ServerDeps) {
  return {
    async "tokens.list"({ query }, { tenant }) {
      return listed("tokens", mapPage(await store.read.tokens(tenant, query), viewOf));
    },
    async "tokens.create"({ body: { name, role, expiresInMs, reason } }, who) {
      const { id, secret, hash } = mintToken(random);
      const lifetimeMs = lifetimeOf(expiresInMs, lifetimes);
      const expiry = defined({ expiresInMs: lifetimeMs });
      const token = await who.intake.putToken(
        { id, tenant: who.tenant, name, role, hash, ...expiry },
        auditOf(who, reason),
      );
      if (token.id !== id) {
        const message = `token ${token.id} was made by the first call of this key, and its secret went out with that answer`;
        throw new TapeError("TAPE_KEY_REUSED", message, { id: token.id });
      }
      return { token: viewOf(token), secret: `${id}.${secret}` };
    },
    async "tokens.revoke"({ params: { id }, body: { reason } }, who) {
      await store.intake.revokeToken(who.tenant, id, auditOf(who, reason));
      return {};
    },
  } satisfies Partial<HandlersOf<typeof routes>>;
}

function probeHandlers(deps: ServerDeps) {
  const { store, service } = deps;
  let pending: Promise<boolean> | undefined; // one query of the store at a time, for all callers
  let described: Record<string, unknown> | undefined;
  const health = healthOn(deps);
  const census = new TenantCensus(deps);
  return {
    async livez() {
      return { status: "ok" };
    },
    async readyz() {
      if (service.draining) return { status: "draining" };
      pending ??= store
        .health()
        .then(
          () => true,
          () => false,
        )
        .finally(() => {
          pending = undefined;
        });
      const reached = await pending;
      return { status: reached ? "ok" : "store_unreachable" };
    },
    healthz: (_call, who) => health(who),
    async metrics(_call, { tenant, named }) {
      if (!named) return service.metricsText();
      const queues = await readQueues(store.read, tenant).catch(() => []); // the other metrics matter most without a store
      return service.metricsText() + service.queues.text(tenant, queues) + (await census.text(tenant));
    },
    async openapi() {
      described ??= openApi(service.version);
      return described;
    },
  } satisfies Partial<HandlersOf<typeof routes>>;
}

function viewOf({ id, tenant, name, role, createdAt, expiresAt, revokedAt, usedAt }: ApiToken) {
  const known = roles.find((name) => name === role) ?? ("reader" satisfies Role);
  return { id, tenant, name, role: known, createdAt, expiresAt, revokedAt, usedAt };
}
