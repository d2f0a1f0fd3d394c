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

const maxAtOnce = 1_000;

/** Renews in one statement; a second tells whose term is over; only who got no verdict from either is tried alone. */
export async function renewAll(options: RenewalsOptions, renewals: readonly RenewRequest[]): Promise<RenewResult[]> {
  const verdicts = new Map<string, RenewResult>();
  const sorted = [...renewals].sort((a, b) => a.fence.journal - b.fence.journal);
  for (let k = 0; k < sorted.length; k += maxAtOnce) {
    const some = sorted.slice(k, k + maxAtOnce);
    await renewSome(options, some, verdicts);
    const rest = some.filter(({ fence }) => !verdicts.has(keyOf(fence)));
    if (rest.length > 0) await refuseLost(options, rest, verdicts);
  }
  return Promise.all(
    renewals.map(
      async (renewal): Promise<RenewResult> => verdicts.get(keyOf(renewal.fence)) ?? renewAlone(options, renewal),
    ),
  );
}

async function renewSome(
  { ask }: RenewalsOptions,
  renewals: readonly RenewRequest[],
  verdicts: Map<string, RenewResult>,
): Promise<void> {
  const params = {
    ...termsOf(renewals),
    progresses: numbersLiteral(renewals.map((r) => r.progress)),
    progressNotes: textsLiteral(renewals.map((r) => r.progressNote ?? null)),
  };
  for (const row of await resultsOf(() => ask("renew_many", params))) {
    // One journal may be asked for under two tokens, or by two tenants.
    verdicts.set(`${row.journal}.${row.token}.${row.nonce}.${row.tenant}`, {
      ok: true,
      notes: Number(row.notes),
      ttlMs: Number(row.ttl_ms),
    });
  }
}

/** A quarter of a million fences that nobody has must not become as many transactions. */
async function refuseLost(
  { ask }: RenewalsOptions,
  renewals: readonly RenewRequest[],
  verdicts: Map<string, RenewResult>,
): Promise<void> {
  for (const row of await resultsOf(() => ask("renew_many.lost", termsOf(renewals)))) {
    const { fence } = renewals[Number(row.at) - 1]!;
    const found = row.token === null ? undefined : row;
    verdicts.set(keyOf(fence), { ok: false, error: staleError(fence, found) });
  }
}

/** A row that somebody keeps locked gets no verdict yet; the verdicts of the others must not be lost with it. */
async function renewAlone({ writer }: RenewalsOptions, renewal: RenewRequest): Promise<RenewResult> {
  try {
    return await writer.run(() => renewPlan(renewal), { allocates: false, tenant: renewal.fence.tenant });
  } catch (error) {
    if (error instanceof TapeError) return { ok: false, error };
    throw error;
  }
}

/** A renewal may be repeated: whether this one happened is no question. Whoever gets no verdict is tried alone. */
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
