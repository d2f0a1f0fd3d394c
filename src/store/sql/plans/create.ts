import { TapeError } from "../../../model/errors.ts";
import { makeFence } from "../../../model/fence.ts";
import type { Claimant } from "../../../model/lease.ts";
import { changesOfCreation } from "../../../model/project.ts";
import type { RecordData } from "../../../model/records.ts";
import type { Created } from "../../contract.ts";
import { ask, askRow, type Ground, type Plan } from "../plan.ts";
import { applyChange } from "./append.ts";
import { ownTerm } from "./claim.ts";

export type FirstTerm = Claimant & { readonly nonce: bigint };

/** Creates a run, or finds the same one; with `first`, its creator holds the first term from the same transaction. */
export function* createPlan(
  ground: Ground,
  tenant: string,
  data: RecordData<"run.created">,
  first?: FirstTerm,
): Plan<Created> {
  if (data.fork !== undefined) {
    // A record that names another tenant's journal is not written, as one is not that names none.
    const { journal: source } = data.fork;
    if ((yield* askRow("run.place", { tenant, journal: source })) === undefined) {
      if ((yield* askRow("run.find", { tenant, id: data.id })) !== undefined)
        return yield* existingRun(tenant, data, first);
      const message = `the fork names journal ${source}, and no run has it`;
      throw new TapeError("TAPE_BAD_INPUT", message, { field: "fork" });
    }
  }
  const journal = ground.allocate();
  const { workflow } = data;
  const place = { journal, kind: "run", token: 0n, nonce: 0n, keepVersions: 0, allocate: ground.allocate } as const;
  const changes = changesOfCreation(tenant, first === undefined ? data : { ...data, holder: holderOf(first) }, place);
  let token = 0n;
  for (const change of changes) {
    if (change.do === "run.create") {
      const { count } = yield* ask("run.root", change);
      if (count === 0) return yield* existingRun(tenant, data, first);
    } else if (first !== undefined && change.do === "lease.create") {
      const row = yield* askRow("lease.first", {
        journal,
        tenant,
        workflow,
        ...first,
        maxStallMs: first.maxStallMs ?? null,
      });
      token = BigInt(row?.token as string);
    } else {
      yield* applyChange(ground, change, tenant);
    }
  }
  if (first === undefined) return { journal, fresh: true };
  const { nonce, ttlMs } = first;
  const fence = makeFence(tenant, journal, token, nonce);
  const term = {
    fence,
    journal,
    kind: "run",
    tenant,
    run: journal,
    ttlMs,
    head: 1,
    notes: 0,
    reason: "start",
  } as const;
  return { journal, fresh: true, term };
}

export function holderOf(first: Claimant): NonNullable<RecordData<"run.created">["holder"]> {
  const { owner, label, reactor, ttlMs } = first;
  return { owner, label, reactor, ttlMs };
}

function* existingRun(tenant: string, data: RecordData<"run.created">, first: FirstTerm | undefined): Plan<Created> {
  const row = yield* askRow("run.find", { tenant, id: data.id });
  if (row === undefined) {
    throw new TapeError("TAPE_RUN_GONE", `run ${data.id} existed and was deleted`, { id: data.id });
  }
  if (row.workflow !== data.workflow || row.input_hash !== data.inputHash) {
    const message = `run ${data.id} exists with another ${row.workflow !== data.workflow ? "workflow" : "input"}`;
    throw new TapeError("TAPE_RUN_CONFLICT", message, { id: data.id });
  }
  const journal = Number(row.journal);
  // This very creation, whose answer was lost: its term is still the one it asked for.
  const term = first === undefined ? undefined : yield* ownTerm(journal, tenant, first);
  return term === undefined ? { journal, fresh: false } : { journal, fresh: true, term };
}
