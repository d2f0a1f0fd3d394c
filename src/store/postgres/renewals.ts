import { TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { RenewRequest, RenewResult } from "../../model/lease.ts";
import type { QueryResult } from "../sql/plan.ts";
import { renewPlan } from "../sql/plans/claim.ts";
import type { ParamsOf, RowOf } from "../sql/statements.gen.ts";
import { staleError } from "../validate/arguments.ts";
import { numbersLiteral, textsLiteral } from "./arrays.ts";
import type { PostgresName } from "./connections.ts";
import { classifyError, unreachable } from "./errors.ts";
import type { Writer } from "./writer.ts";

export interface RenewalsOptions {
  readonly ask: <N extends PostgresName>(name: N, params: ParamsOf<N>) => Promise<QueryResult<RowOf<N>>>;
  readonly writer: Writer;
}

const maxRenewals = 1_000;

/**
 * Renews in one statement. A second one finds the terms that are over. Only those without a result from either are
 * tried alone.
 */
export async function renewAll(options: RenewalsOptions, renewals: readonly RenewRequest[]): Promise<RenewResult[]> {
  const results = new Map<string, RenewResult>();
  const sorted = [...renewals].sort((a, b) => a.fence.journal - b.fence.journal);
  for (let k = 0; k < sorted.length; k += maxRenewals) {
    const part = sorted.slice(k, k + maxRenewals);
    await renewPart(options, part, results);
    const rest = part.filter(({ fence }) => !results.has(keyOf(fence)));
    if (rest.length > 0) await rejectLost(options, rest, results);
  }
  return Promise.all(
    renewals.map(
      async (renewal): Promise<RenewResult> => results.get(keyOf(renewal.fence)) ?? renewAlone(options, renewal),
    ),
  );
}

async function renewPart(
  { ask }: RenewalsOptions,
  renewals: readonly RenewRequest[],
  results: Map<string, RenewResult>,
): Promise<void> {
  const params = {
    ...termsOf(renewals),
    progresses: numbersLiteral(renewals.map((r) => r.progress)),
    progressAgos: numbersLiteral(renewals.map((r) => r.progressAgoMs ?? 0)),
    progressNotes: textsLiteral(renewals.map((r) => r.progressNote ?? null)),
  };
  for (const row of await resultsOf(() => ask("renew_many", params))) {
    // One journal may be renewed under two tokens, or by two tenants.
    results.set(`${row.journal}.${row.token}.${row.nonce}.${row.tenant}`, {
      ok: true,
      notes: Number(row.notes),
      ttlMs: Number(row.ttl_ms),
    });
  }
}

/** A quarter of a million unknown fences must not become as many transactions. */
async function rejectLost(
  { ask }: RenewalsOptions,
  renewals: readonly RenewRequest[],
  results: Map<string, RenewResult>,
): Promise<void> {
  for (const row of await resultsOf(() => ask("renew_many.lost", termsOf(renewals)))) {
    const { fence } = renewals[Number(row.at) - 1]!;
    const found = row.token === null ? undefined : row;
    results.set(keyOf(fence), { ok: false, error: staleError(fence, found) });
  }
}

/** A locked row has no result yet; the results of the others must not be lost with it. */
async function renewAlone({ writer }: RenewalsOptions, renewal: RenewRequest): Promise<RenewResult> {
  try {
    return await writer.run(() => renewPlan(renewal), { allocates: false, tenant: renewal.fence.tenant });
  } catch (error) {
    if (error instanceof TapeError) return { ok: false, error };
    throw error;
  }
}

/** A renewal may be repeated, so a lost response needs no check. Renewals without a result are tried alone. */
async function resultsOf<R>(ask: () => Promise<QueryResult<R>>): Promise<readonly R[]> {
  try {
    return (await ask()).rows;
  } catch (error) {
    if (error instanceof TapeError) throw error;
    if (classifyError(error).kind === "connection") throw unreachable(error);
    return [];
  }
}

const termsOf = (renewals: readonly RenewRequest[]): ParamsOf<"renew_many.lost"> => ({
  journals: numbersLiteral(renewals.map((r) => r.fence.journal)),
  tenants: textsLiteral(renewals.map((r) => r.fence.tenant)),
  tokens: numbersLiteral(renewals.map((r) => r.fence.token)),
  nonces: numbersLiteral(renewals.map((r) => r.fence.nonce)),
});

const keyOf = ({ journal, token, nonce, tenant }: Fence): string => `${journal}.${token}.${nonce}.${tenant}`;
