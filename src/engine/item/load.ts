import type { Lease } from "../../lease/lease.ts";
import { TapeError } from "../../model/errors.ts";
import type { Term } from "../../model/lease.ts";
import type { JournalRecord } from "../../model/records.ts";
import type { EffectRow } from "../../model/rows.ts";
import { readAll } from "../../store/read-all.ts";
import type { ReactorDeps } from "./deps.ts";
import { Item } from "./item.ts";

export async function loadItem(deps: ReactorDeps, lease: Lease, term: Term): Promise<Item> {
  const { store, tenant } = deps;
  const target = { journal: term.journal };
  const [effects, records, notes, run] = await Promise.all([
    store.read.effects(tenant, { item: term.journal }),
    readAll((from) => store.read.journal(tenant, target, { from })),
    readAll((from) => store.read.journal(tenant, target, { from, inbox: true })),
    store.read.lease(tenant, { journal: term.run }),
  ]);
  const [effect] = effects;
  if (effect === undefined) throw new TapeError("TAPE_INVARIANT", `item ${term.journal} has no effect`, target);
  const runEvidence = await evidenceInRun(deps, effect);
  return new Item(deps, lease, effect, { records, notes, runEvidence }, run?.name ?? String(effect.run));
}

/** Evidence of an inline effect that reached the run's inbox too late for the run to use. */
async function evidenceInRun({ store, tenant }: ReactorDeps, effect: EffectRow): Promise<readonly JournalRecord[]> {
  if (effect.dispatch !== "inline" || effect.role !== "effect") return [];
  const target = { journal: effect.run };
  const inbox = await readAll((from) => store.read.journal(tenant, target, { from, inbox: true }));
  return inbox.filter(({ kind, data }) => {
    const { pos, sub = 0 } = data as { pos?: number; sub?: number };
    return kind === "effect.evidence" && pos === effect.pos && sub === effect.sub;
  });
}
