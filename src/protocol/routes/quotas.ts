import { z } from "zod";
import { unlimited } from "../../model/quota.ts";
import { group } from "../route.ts";
import { more, name, text, whole, wholeText } from "../shapes.ts";

const limit = z.int().min(unlimited).max(Number.MAX_SAFE_INTEGER).nullable();
const limits = z.strictObject({ runs: limit, bytes: limit, schedules: limit, streams: limit });

const quotaView = z.strictObject({
  /** Empty: the default for all tenants. */
  tenant: text,
  set: limits,
  limits,
  used: z.strictObject({ runs: whole, bytes: whole.nullable(), schedules: whole }),
});

/** The quotas of tenants. */
export const quotas = group({
  "quotas.get": {
    method: "GET",
    path: "/v1/quota",
    role: "reader",
    repeat: "read",
    summary: "Reads the tenant's quotas and their usage",
    answer: quotaView,
  },
  "quotas.list": {
    method: "GET",
    path: "/v1/quotas",
    role: "operator",
    repeat: "read",
    summary: "Lists quotas of all tenants, for the server's operators; above continues a listing",
    query: z.strictObject({ above: text.exactOptional(), limit: wholeText.exactOptional() }),
    answer: z.strictObject({ quotas: z.array(quotaView), more }),
  },
  "quotas.set": {
    method: "POST",
    path: "/v1/quotas",
    role: "admin",
    repeat: "same",
    manual: true,
    summary:
      "Sets quotas of a tenant, or the default for tenants without their own: a number, -1 for no limit, null for the default",
    body: z.strictObject({
      tenant: name.exactOptional(),
      set: z.strictObject({
        runs: limit.exactOptional(),
        bytes: limit.exactOptional(),
        schedules: limit.exactOptional(),
        streams: limit.exactOptional(),
      }),
      reason: text.min(1),
      by: name.exactOptional(),
    }),
    answer: quotaView,
  },
});
