import type { Duration } from "../base/duration.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { DefiniteFailure, NotSent, type Observation } from "../sdk/outcomes.ts";
import { durationOf } from "../sdk/validate.ts";
import type { Store } from "../store/contract/store.ts";
import { assertHolder, refuseStale, scopeOf, type TokenHolder } from "./token-holder.ts";

/**
 * An intermediate record, for upstreams that cannot compare tokens. It is written between the decision and the call. The
 * result counts only once the record is complete, and only its current owner can complete it.
 *
 *   (none) ──claim──▶ OPEN(token) ──complete, by that token alone──▶ DONE(result)
 *                        └──a newer token: observe first──▶ OPEN(newer) | DONE
 *
 * It cannot stop a stale owner's request on its way to the upstream; nothing on our side can. It discards the stale
 * owner's result, and stops the new owner from blindly repeating a call that may have been sent. Inside a run use an
 * effect, which does all of this.
 */
interface CallRecord {
  readonly state: "OPEN" | "DONE";
  readonly scope: string;
  readonly token: bigint;
  /** Store time until which the owner that claimed it may still send. */
  readonly sendUntil: number;
  readonly result?: unknown;
}

/** Options of {@link recordedCall}. */
export interface RecordedCallOptions<R> {
  /** Asks the upstream about a call whose owner did not record a result. Without it, such a call stays unknown. */
  readonly observe?: (key: string) => Promise<Observation<R>>;
  /** How long after its claim an owner may still send. Until then "absent" proves nothing. Default 30 s. */
  readonly sendWithin?: Duration;
}

/** Where the records are kept: the values of a store. */
export interface RecordStore {
  /** The store. */
  readonly store: Pick<Store, "read" | "intake">;
  readonly tenant: string;
}

/**
 * Makes a call under `key`, at most once as far as can be known, and returns its recorded result from then on.
 * TAPE_FENCED: a newer owner has the record. TAPE_OUTCOME_UNKNOWN: an earlier owner may have made the call.
 *
 * @example
 * const receipt = await recordedCall(app, lease, "invoice-17", () => printer.print(invoice), { observe });
 */
export async function recordedCall<R>(
  records: RecordStore,
  holder: TokenHolder,
  key: string,
  call: () => Promise<R>,
  options: RecordedCallOptions<R> = {},
): Promise<R> {
  assertHolder(holder);
  const sendMs = durationOf(`call ${key}`, "sendWithin", options.sendWithin, 30_000);
  const name = `tape.call/${key}`;
  const { store, tenant } = records;
  const found = await store.read.value(tenant, name);
  const record = found?.deleted === false ? (found.value as CallRecord) : undefined;
  if (record?.state === "DONE") return record.result as R;
  const scope = scopeOf(holder);
  const write = writer(records, name, { scope, token: holder.token });
  const version = found?.version ?? 0;
  if (record !== undefined) {
    if (record.scope === scope && record.token > holder.token) refuseStale(scope, holder.token, record.token);
    const settled = await observeFirst(records, key, record, options);
    if (settled !== undefined) {
      await write({ state: "DONE", sendUntil: record.sendUntil, result: settled.value }, version);
      return settled.value;
    }
  }
  const sendUntil = (await store.read.now()) + sendMs;
  const claimed = await write({ state: "OPEN", sendUntil }, version);
  assertHolder(holder); // the lease may have expired during the claim
  if ((await store.read.now()) >= sendUntil) {
    throw new TapeError("TAPE_STORE_BUSY", `${key}: the send window has passed; nothing was sent`, { key });
  }
  const result = await call().catch(async (error: unknown) => {
    // Nothing happened, so the next attempt need not observe. Any other error leaves the record open.
    if (error instanceof NotSent || error instanceof DefiniteFailure)
      await store.intake.deleteValue(tenant, name, claimed);
    throw error;
  });
  await write({ state: "DONE", sendUntil, result }, claimed);
  return result;
}

/** Conditional on the version: of all owners that read the same record one proceeds, and the others are refused. */
function writer({ store, tenant }: RecordStore, name: string, owner: { scope: string; token: bigint }) {
  return async (record: Omit<CallRecord, "scope" | "token">, version: number): Promise<number> => {
    try {
      return (await store.intake.putValue(tenant, name, { ...owner, ...record }, { version })).version;
    } catch (error) {
      if (!isTapeError(error, "TAPE_VERSION_CONFLICT")) throw error;
      const now = (await store.read.value(tenant, name))?.value as CallRecord | undefined;
      return refuseStale(owner.scope, owner.token, now?.token);
    }
  };
}

/** undefined: the call did not happen and will not. */
async function observeFirst<R>(
  { store }: RecordStore,
  key: string,
  record: CallRecord,
  { observe }: RecordedCallOptions<R>,
): Promise<{ value: R } | undefined> {
  const seen = await observe?.(key);
  if (seen?.observed === "confirmed" || seen?.observed === "duplicate") return { value: seen.value };
  const left = record.sendUntil - (await store.read.now());
  if (seen?.observed === "absent" && (seen.final || left <= 0)) return undefined;
  const why =
    seen === undefined
      ? "there is no observe to ask the upstream"
      : seen.observed === "absent"
        ? `its owner may still send for ${Math.ceil(left)} ms`
        : seen.reason;
  const message = `${key} was started under token ${record.token} and not completed: ${why}`;
  throw new TapeError("TAPE_OUTCOME_UNKNOWN", message, { key, token: String(record.token), leftMs: Math.max(0, left) });
}
