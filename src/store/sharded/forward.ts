import type { Store } from "../contract/store.ts";

/** Names of methods whose first argument is the tenant. */
export type TenantFirst<Ops> = {
  [K in keyof Ops]: Ops[K] extends (tenant: string, ...rest: never[]) => Promise<unknown> ? K : never;
}[keyof Ops];

type Send = (tenant: string, work: (store: Store) => Promise<unknown>) => Promise<unknown>;
type Method = (tenant: string, ...rest: unknown[]) => Promise<unknown>;

/** These methods, each sent to the shard of its first argument. */
export function forwarded<Ops extends object, K extends TenantFirst<Ops> & string>(
  names: readonly K[],
  send: Send,
  opsOf: (store: Store) => Ops,
): Pick<Ops, K> {
  const methods: Record<string, Method> = {};
  for (const name of names) {
    methods[name] = (tenant, ...rest) =>
      send(tenant, (store) => (opsOf(store) as unknown as Record<string, Method>)[name]!(tenant, ...rest));
  }
  return methods as unknown as Pick<Ops, K>;
}
