import { addShardOf } from "../../host/open-store.ts";
import { TapeError } from "../../model/errors.ts";
import type { ShardOps, Store } from "../../store/contract/store.ts";
import { operatorOf, operatorOptions, outputOption, settingsOf, storeOptions, withApp } from "../app.ts";
import type { Command } from "../command.ts";
import { lasting, plural, printJson, printRows, timeOf, wantsJson } from "../output.ts";
import { type Finding, finding } from "./finding.ts";

function shardsOf({ shards }: Store): ShardOps {
  if (shards !== undefined) return shards;
  const message = "this store has no shards; name them in tape.store.shards, and call it there, not over a server";
  throw new TapeError("TAPE_SHARD_REFUSED", message);
}

const list: Command = {
  name: "shard list",
  summary: "lists the shards of the store, their tenants, and moves that have not ended",
  options: { store: storeOptions.store, config: storeOptions.config, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ store }) => {
      const shards = await shardsOf(store).list();
      const moves = await shardsOf(store)
        .moves()
        .catch(() => undefined); // the first shard is down, and the list shows it
      if (wantsJson(invocation)) {
        printJson(invocation, { shards, moves: moves ?? null });
        return 0;
      }
      printRows(
        invocation,
        shards,
        [
          { title: "SHARD", of: ({ name }) => name },
          { title: "NUMBER", right: true, of: ({ number }) => String(number) },
          { title: "STATE", of: ({ state, down }) => (down === undefined ? state : "DOWN") },
          { title: "TENANTS", right: true, of: ({ tenants }) => (tenants === undefined ? "" : String(tenants)) },
          { title: "WHY", of: ({ down }) => down ?? "" },
        ],
        "no shards",
      );
      for (const { tenant, from, to, phase, by, at } of moves ?? []) {
        invocation.screen.line(`move of ${tenant} from ${from} to ${to}: ${phase} since ${timeOf(at)}, by ${by}`);
      }
      return 0;
    }),
};

const add: Command = {
  name: "shard add",
  summary: "makes the empty database of a new name in the list a shard; new tenants come to it from then on",
  arguments: [{ name: "name", help: "its name in tape.store.shards or --store" }],
  options: { store: storeOptions.store, config: storeOptions.config },
  run: async (invocation) => {
    const name = invocation.arguments.name!;
    const { number } = await addShardOf(settingsOf(invocation).url, name);
    invocation.screen.line(`shard ${name} has number ${number}; give every process the new list`);
    return 0;
  },
};

const move: Command = {
  name: "shard move",
  summary: "moves a tenant to another shard; repeat it if it was interrupted",
  arguments: [{ name: "tenant", help: "the tenant to move" }],
  options: {
    to: { value: "SHARD", help: "the shard that gets the tenant" },
    cancel: { help: "give up a move that was interrupted before it took effect" },
    ...operatorOptions,
    store: storeOptions.store,
    config: storeOptions.config,
    ...outputOption,
  },
  run: (invocation) =>
    withApp(invocation, async ({ store }) => {
      const tenant = invocation.arguments.tenant!;
      const { by, reason } = operatorOf(invocation);
      if (invocation.given("cancel")) {
        const cancelled = await shardsOf(store).cancelMove(tenant, { by, reason });
        invocation.screen.line(cancelled ? `${tenant} stays where it is` : `${tenant} is not moving`);
        return 0;
      }
      const result = await shardsOf(store).move(tenant, invocation.text("to") ?? "", { by, reason });
      if (wantsJson(invocation)) printJson(invocation, result);
      else invocation.screen.line(movedText(result));
      return 0;
    }),
};

function movedText({ tenant, moved, rows, pausedMs }: Awaited<ReturnType<ShardOps["move"]>>): string {
  if (!moved) return `${tenant} is there already`;
  if (rows === 0) return `${tenant} has moved: an interrupted move is complete`;
  return `${tenant} has moved: ${plural(rows, "row")}, paused for ${lasting(pausedMs)}`;
}

/** Checks of the shards; none for a store of one database. */
export async function shardFindings({ shards }: Store): Promise<Finding[]> {
  if (shards === undefined) return [];
  const all = await shards.list();
  const down = all.filter((shard) => shard.down !== undefined);
  const summary = all.map(
    ({ name, tenants }) => `${name}${tenants === undefined ? "" : ` (${plural(tenants, "tenant")})`}`,
  );
  const moves = await shards.moves().catch(() => []); // the first shard is down, as the first finding says
  return [
    finding(
      "shards",
      summary.join(", "),
      "fail",
      down.map(({ name, down: why }) => `shard ${name} cannot be reached: ${why}`).join("; "),
      "Start its server: its tenants wait until then, and all others are served (docs/shards.md).",
    ),
    finding(
      "moves",
      "no tenant is moving",
      "warn",
      moves.map(({ tenant, to, at }) => `${tenant} is moving to ${to} since ${timeOf(at)}`).join("; "),
      "If no process moves it any more, repeat: durable-tape shard move TENANT --to SHARD --reason TEXT.",
    ),
  ];
}

export const shardCommands: readonly Command[] = [list, add, move];
