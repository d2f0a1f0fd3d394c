import { decode, encode } from "../../../base/codec.ts";
import { isTapeError, TapeError } from "../../../model/errors.ts";
import { notFound } from "../../../model/not-found.ts";
import { encodeBody } from "../../../model/projection.ts";
import type { ApiToken, AuditInfo, IdempotencyKey, NewToken } from "../../contract/store.ts";
import { apiTokenOf } from "../../decode-rows.ts";
import { type Plan, query, queryRow } from "../plan.ts";
import { actedBy, auditPlan, storeJournal } from "./audit.ts";

/** What a server needs besides: calls that may be sent again, credentials, the audit. */

/**
 * Performs the work, or answers as it was answered before. The key is claimed first: a second caller waits there for the
 * first one's commit, and then finds its answer. Work that throws takes the claim back with everything else, but for a
 * conflict of versions: that has changed nothing, and is the answer. A copy of the call that comes late would else find
 * the way free meanwhile, and do what its caller was told had not been done.
 */
export function* idempotentPlan<T>(
  repeat: IdempotencyKey,
  work: Plan<T>,
  answering: Answering<T> = {},
): Plan<T | TapeError> {
  const { tenant, key, hash } = repeat;
  const { refused, kept, restored } = answering;
  while ((yield* query("idempotency.claim", { tenant, key, hash })).count === 0) {
    const known = yield* queryRow("idempotency.find", { tenant, key });
    if (known === undefined) continue; // purged in between
    if (known.hash !== hash) {
      throw new TapeError("TAPE_KEY_REUSED", `the key ${key} was used for a call that said something else`, { key });
    }
    const before = decode(known.response) as T | TapeError;
    return before instanceof TapeError || restored === undefined ? before : yield* restored(before);
  }
  const answer = yield* orConflict(work);
  const failed = answer instanceof TapeError;
  if (!failed && refused?.(answer)) {
    yield* query("idempotency.drop", { tenant, key });
    return answer;
  }
  yield* query("idempotency.store", {
    tenant,
    key,
    response: encode(failed || kept === undefined ? answer : kept(answer)),
  });
  return answer;
}

/** What becomes of an answer that was not thrown. */
export interface Answering<T> {
  /** It says all the same that nothing was done: it is not kept. */
  readonly refused?: (answer: T) => boolean;
  /** What is kept of it, where it holds what may be erased elsewhere. */
  readonly kept?: (answer: T) => Partial<T>;
  readonly restored?: (kept: T) => Plan<T>;
}

function* orConflict<T>(work: Plan<T>): Plan<T | TapeError> {
  try {
    return yield* work;
  } catch (error) {
    if (isTapeError(error, "TAPE_VERSION_CONFLICT")) return error;
    throw error;
  }
}

/** A client gives up within minutes; a day lets a queue that was down overnight send its calls again. */
const idempotencyTtlMs = 86_400_000;
/** So many at a time: the transaction stays short however many there are. */
const purgedAtOnce = 1_000;

export function* purgePlan(): Plan<void> {
  yield* query("idempotency.purge", { olderMs: idempotencyTtlMs, limit: purgedAtOnce });
}

/** What a person did to no journal in particular is written into the store's own; `tenant`: whom it concerns. */
export function* recordOperatorAction(
  action: string,
  act: AuditInfo,
  detail: { tenant: string } & Record<string, unknown>,
): Plan<void> {
  const body = encodeBody(actedBy(action, act, detail));
  yield* query("store.record", { kind: "operator.action", body });
  yield* auditPlan({ tenant: detail.tenant, journal: storeJournal, subject: null, body });
}

export function* putTokenPlan(token: NewToken, act: AuditInfo): Plan<ApiToken> {
  const { id, tenant, name, role, hash, expiresInMs = null } = token;
  const row = yield* queryRow("token.put", { id, tenant, name, role, hash, delayMs: expiresInMs });
  if (row !== undefined) {
    yield* recordOperatorAction("token.create", act, { tenant, token: id, name, role });
    return apiTokenOf(row);
  }
  const known = yield* queryRow("token.get", { id });
  if (known?.tenant !== tenant || known.hash !== hash) {
    throw new TapeError("TAPE_BAD_INPUT", "a token of this id exists", { field: "id" });
  }
  return apiTokenOf(known);
}

export function* revokeTokenPlan(tenant: string | undefined, id: string, act: AuditInfo): Plan<ApiToken> {
  const revoked = yield* queryRow("token.revoke", { tenant: tenant ?? null, id });
  if (revoked !== undefined) {
    const token = apiTokenOf(revoked);
    yield* recordOperatorAction("token.revoke", act, {
      tenant: token.tenant,
      token: id,
      name: token.name,
      role: token.role,
    });
    return token;
  }
  const known = yield* queryRow("token.get", { id });
  if (known === undefined || (tenant !== undefined && known.tenant !== tenant)) {
    throw notFound("token", id);
  }
  return apiTokenOf(known);
}

/** Long after it is listed no more: whoever looks into the table itself finds lately lost ones too. */
const processTtlMs = 600_000;

/** Rows of processes that died are nobody's to delete: whoever reports does it. */
export function* reportPlan(row: {
  readonly tenant: string;
  readonly owner: string;
  readonly label: string;
  readonly body: string;
}): Plan<void> {
  yield* query("process.put", row);
  yield* query("process.purge", { olderMs: processTtlMs });
}
