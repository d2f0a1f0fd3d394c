import type { z } from "zod";
import type { Route } from "./route.ts";
import { blobs } from "./routes/blobs.ts";
import { builds } from "./routes/builds.ts";
import { conversations } from "./routes/conversations.ts";
import { effects } from "./routes/effects.ts";
import { leases } from "./routes/leases.ts";
import { mcp } from "./routes/mcp.ts";
import { overview } from "./routes/overview.ts";
import { queues } from "./routes/queues.ts";
import { quotas } from "./routes/quotas.ts";
import { retention } from "./routes/retention.ts";
import { runs } from "./routes/runs.ts";
import { service } from "./routes/service.ts";
import { sinks } from "./routes/sinks.ts";
import { store } from "./routes/store.ts";
import { streams } from "./routes/streams.ts";
import { talk } from "./routes/talk.ts";
import { values } from "./routes/values.ts";

/** Every call of the protocol. A server that lacks a handler, or has an extra one, does not compile. */
export const contract = {
  ...runs,
  ...effects,
  ...leases,
  ...queues,
  ...builds,
  ...sinks,
  ...values,
  ...overview,
  ...store,
  ...talk,
  ...streams,
  ...conversations,
  ...blobs,
  ...quotas,
  ...retention,
  ...service,
  ...mcp,
} as const;

export type Contract = typeof contract;
export type RouteName = keyof Contract;

/** All routes with their names, as a list. */
export const routes: readonly (Route & { readonly name: RouteName })[] = Object.entries(contract).map(
  ([name, route]) => ({ name: name as RouteName, ...(route as Route) }),
);

type Part<N extends RouteName, P extends string> = Contract[N] extends { readonly [K in P]: infer S extends z.ZodType }
  ? { readonly [K in P]: z.output<S> }
  : unknown;

/** The decoded parameters, query and body of a call. */
export type CallOf<N extends RouteName> = Part<N, "params"> & Part<N, "query"> & Part<N, "body">;
/** The decoded response; for a stream, each line. */
export type ResponseOf<N extends RouteName> = z.output<Contract[N]["answer"]>;
