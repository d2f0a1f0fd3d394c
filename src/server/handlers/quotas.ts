import { TapeError } from "../../model/errors.ts";
import type { quotas as routes } from "../../protocol/routes/quotas.ts";
import { auditInfoOf, type Call, type HandlersOf, listed, type ServerDeps } from "../handler-types.ts";

export function quotaHandlers({ store, service }: ServerDeps): HandlersOf<typeof routes> {
  /** No tenant sets its own limits, nor sees what others have. */
  const athome = ({ tenant }: Call, needs: string): void => {
    if (tenant === service.home) return;
    throw new TapeError("TAPE_FORBIDDEN", `only an ${needs} of ${service.home} may do this for all tenants`, { needs });
  };
  return {
    "quotas.get": (_call, { tenant }) => store.read.quota(tenant),
    async "quotas.list"({ query }, who) {
      athome(who, "operator");
      return listed("quotas", await store.read.quotas(query));
    },
    async "quotas.set"({ body: { tenant, set, ...said } }, who) {
      athome(who, "admin");
      return store.intake.setQuota(tenant, set, { ...auditInfoOf(who, said), home: service.home });
    },
  };
}
