import { TapeError } from "../../../model/errors.ts";
import { type AuditInfo, maxCounted, type ShardMove, type ShardOps, type ShardView } from "../../contract/store.ts";
import type { Router } from "../../sharded/router.ts";
import type { ShardAccess } from "./access.ts";
import { enrol } from "./join.ts";
import { cancelMove, type MoveDeps, moveTenant } from "./move.ts";

const maxMoves = 1_000;

/** What operators do with the shards of a set. */
export function shardOps(router: Router, deps: MoveDeps): ShardOps {
  const directory = (): ShardAccess => deps.access(0);
  const nameOf = (number: number): string =>
    router.shards.find((shard) => shard.number === number)?.name ?? `${number}`;
  const numberOf = (name: string): number => {
    const shard = router.shards.find((one) => one.name === name);
    if (shard !== undefined) return shard.number;
    const names = router.shards.map((one) => one.name).join(", ");
    throw new TapeError("TAPE_SHARD_REFUSED", `there is no shard ${name}: the list has ${names}`, { shard: name });
  };
  const record = (tenant: string, action: string, audit: AuditInfo, detail: object): Promise<void> =>
    router.write(tenant, (store) => store.intake.recordAudit(tenant, action, audit, detail));
  const list = () => listShards(router, deps);
  return {
    list,
    async moves() {
      const { rows } = await directory().ask("shard.moves", { limit: maxMoves });
      return rows.map(({ tenant, source, target, phase, by, reason, at }) => ({
        tenant,
        from: nameOf(Number(source)),
        to: nameOf(Number(target)),
        phase: phase as ShardMove["phase"],
        by,
        reason,
        at: Number(at),
      }));
    },
    async move(tenant, to, audit) {
      const target = numberOf(to);
      await router.shardOf(tenant); // a tenant that is new here gets its place first
      return moveTenant(deps, {
        tenant,
        target,
        audit,
        record: () => record(tenant, "shard.move", audit, { to }),
      });
    },
    async cancelMove(tenant, audit) {
      const cancelled = await cancelMove(deps, tenant);
      if (cancelled) await record(tenant, "shard.move_cancelled", audit, {});
      return cancelled;
    },
    async setOpen(shard, open, audit) {
      const number = numberOf(shard);
      const state = open ? "OPEN" : "CLOSED";
      for (const one of router.shards) {
        if (one.number === 0 || one.down === undefined)
          await deps.access(one.number).session((session) => enrol(session, { number, name: shard, state }));
      }
      if (audit.home !== undefined) await record(audit.home, "shard.state", audit, { shard, state });
      return (await list()).find(({ name }) => name === shard)!;
    },
  };
}

async function listShards(router: Router, deps: MoveDeps): Promise<ShardView[]> {
  const { found } = await router.all(async (_store, { number }) => {
    const { rows } = await deps.access(number).ask("shard.roster", {});
    const tenants = (await deps.access(number).ask("shard.tenants", { above: "", limit: maxCounted })).rows.length;
    return { rows, tenants };
  });
  const known = found.find(({ shard }) => shard.number === 0) ?? found[0]!;
  return known.value.rows.map(({ number, name, state }): ShardView => {
    const own = found.find(({ shard }) => shard.number === Number(number));
    const down = router.shards.find((shard) => shard.number === Number(number))?.down?.error.message;
    return {
      number: Number(number),
      name,
      state: state as ShardView["state"],
      ...(own !== undefined && { tenants: own.value.tenants }),
      ...(own === undefined && { down: down ?? "it cannot be reached" }),
    };
  });
}
