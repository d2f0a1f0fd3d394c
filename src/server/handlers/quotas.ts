import { TapeError } from "../../model/errors.ts";
import type { quotas as routes } from "../../protocol/routes/quotas.ts";
import { auditInfoOf, type Call, type HandlersOf, listed, type ServerDeps } from "../handler-types.ts";

export function quotaHandlers({ store, service }: ServerDeps): HandlersOf<typeof routes> {
  /** No tenant sets its own limits or sees those of others. */
  const assertHome = ({ tenant }: Call, needs: string): void => {
    if (tenant === service.home) return;
    throw new TapeError("TAPE_FORBIDDEN", `only an ${needs} of ${service.home} may do this for all tenants`, { needs });
  };
  return {
    "quotas.get": (_call, { tenant }) => store.read.quota(tenant),
    async "quotas.list"({ query }, who) {
      assertHome(who, "operator");
      return listed("quotas", await store.read.quotas(query));
    },
    async "quotas.set"({ body: { tenant, set, ...action } }, who) {
      assertHome(who, "admin");
      return store.intake.setQuota(tenant, set, { ...auditInfoOf(who, action), home: service.home });
    },
  };
}
