import { decode, encode } from "../../../base/codec.ts";
import { isTapeError, TapeError } from "../../../model/errors.ts";
import { storeJournal } from "../../../model/journal-numbers.ts";
import { notFound } from "../../../model/not-found.ts";
import { encodeBody } from "../../../model/projection.ts";
import type { ApiToken, AuditInfo, IdempotencyKey, NewToken } from "../../contract/store.ts";
import { apiTokenOf } from "../../decode-rows.ts";
import { type Plan, query, queryRow } from "../plan.ts";
import { auditPlan, operatorActionBy } from "./audit.ts";
import { adoptLabels } from "./labels.ts";

/** Plans for servers: repeatable calls, credentials, the audit log. */

/**
 * Performs the work, or returns the stored result. The key is claimed first: a second caller waits there for the first
 * one's commit, and then finds its result. Work that throws rolls the claim back with everything else. The exception is
 * a version conflict, which has changed nothing and is stored as the result. Otherwise a late copy of the call could
 * succeed meanwhile, after its caller was informed that it had failed.
 */
export function* idempotentPlan<T>(
  request: IdempotencyKey,
  work: Plan<T>,
  storage: ResultStorage<T> = {},
): Plan<T | TapeError> {
  const { tenant, key, hash } = request;
  const { refused, kept, restored } = storage;
  while ((yield* query("idempotency.claim", { tenant, key, hash })).count === 0) {
    const known = yield* queryRow("idempotency.find", { tenant, key });
    if (known === undefined) continue; // purged meanwhile
    if (known.hash !== hash) {
      throw new TapeError("TAPE_KEY_REUSED", `the key ${key} was used for a call with other arguments`, { key });
    }
    const stored = decode(known.response) as T | TapeError;
    return stored instanceof TapeError || restored === undefined ? stored : yield* restored(stored);
  }
  const result = yield* orConflict(work);
  const failed = result instanceof TapeError;
  if (!failed && refused?.(result)) {
    yield* query("idempotency.drop", { tenant, key });
    return result;
  }
  yield* query("idempotency.store", {
    tenant,
    key,
    response: encode(failed || kept === undefined ? result : kept(result)),
  });
  return result;
}

/** How the result of a call that did not throw is stored. */
export interface ResultStorage<T> {
  /** The result means that nothing was done: it is not stored. */
  readonly refused?: (result: T) => boolean;
  /** The stored part of the result, without what may be erased elsewhere. */
  readonly kept?: (result: T) => Partial<T>;
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

/** A client gives up within minutes; a day lets a queue that was down overnight repeat its calls. */
const idempotencyTtlMs = 86_400_000;
/** Rows per purge: the transaction stays short however many there are. */
const purgedAtOnce = 1_000;

export function* purgePlan(): Plan<void> {
  yield* query("idempotency.purge", { olderMs: idempotencyTtlMs, limit: purgedAtOnce });
}

/** An operator action on no particular journal is recorded in the store's own; `tenant`: the tenant concerned. */
export function* recordOperatorAction(
  action: string,
  audit: AuditInfo,
  detail: { tenant: string } & Record<string, unknown>,
): Plan<void> {
  const body = encodeBody(operatorActionBy(action, audit, detail));
  yield* query("store.record", { kind: "operator.action", body });
  yield* auditPlan({ tenant: detail.tenant, journal: storeJournal, subject: null, body });
}

export function* putTokenPlan(token: NewToken, audit: AuditInfo): Plan<ApiToken> {
  const { id, tenant, name, role, hash, expiresInMs = null } = token;
  const row = yield* queryRow("token.put", { id, tenant, name, role, hash, delayMs: expiresInMs });
  if (row !== undefined) {
    yield* recordOperatorAction("token.create", audit, { tenant, token: id, name, role });
    return apiTokenOf(row);
  }
  const known = yield* queryRow("token.get", { id });
  if (known?.tenant !== tenant || known.hash !== hash) {
    throw new TapeError("TAPE_BAD_INPUT", "a token with this id exists", { field: "id" });
  }
  return apiTokenOf(known);
}

export function* revokeTokenPlan(tenant: string | undefined, id: string, audit: AuditInfo): Plan<ApiToken> {
  const revoked = yield* queryRow("token.revoke", { tenant: tenant ?? null, id });
  if (revoked !== undefined) {
    const token = apiTokenOf(revoked);
    yield* recordOperatorAction("token.revoke", audit, {
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

/** Much longer than it is listed: the table itself also shows recently lost processes. */
const processTtlMs = 600_000;

/** Rows of dead processes are deleted by the reports of others, now and then, and labels are adopted. */
export function* reportPlan(
  row: { readonly tenant: string; readonly owner: string; readonly label: string; readonly body: string },
  purges: boolean,
): Plan<void> {
  yield* query("process.put", row);
  if (!purges) return;
  yield* query("process.purge", { olderMs: processTtlMs });
  yield* adoptLabels();
}
