import type { z } from "zod";
import type { Route } from "./route.ts";
import { effects } from "./routes/effects.ts";
import { leases } from "./routes/leases.ts";
import { overview } from "./routes/overview.ts";
import { quotas } from "./routes/quotas.ts";
import { runs } from "./routes/runs.ts";
import { service } from "./routes/service.ts";
import { store } from "./routes/store.ts";
import { values } from "./routes/values.ts";

/** Every call there is. A server without a handler for one, or with one for another, does not compile. */
export const contract = {
  ...runs,
  ...effects,
  ...leases,
  ...values,
  ...overview,
  ...store,
  ...quotas,
  ...service,
} as const;

export type Contract = typeof contract;
export type RouteName = keyof Contract;

/** All routes with their names, for whoever goes through them. */
export const routes: readonly (Route & { readonly name: RouteName })[] = Object.entries(contract).map(
  ([name, route]) => ({ name: name as RouteName, ...(route as Route) }),
);

type Part<N extends RouteName, P extends string> = Contract[N] extends { readonly [K in P]: infer S extends z.ZodType }
  ? { readonly [K in P]: z.output<S> }
  : unknown;

/** What a call consists of, as both ends mean it. */
export type CallOf<N extends RouteName> = Part<N, "params"> & Part<N, "query"> & Part<N, "body">;
/** What comes back; of a stream: each line. */
export type ResponseOf<N extends RouteName> = z.output<Contract[N]["answer"]>;
