import type { Duration } from "../base/duration.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { DefiniteFailure, NotSent, type Observation } from "../sdk/outcomes.ts";
import { durationOf } from "../sdk/validate.ts";
import type { Store } from "../store/contract/store.ts";
import { assertHolder, refuseStale, scopeOf, type TokenHolder } from "./token-holder.ts";

/**
 * The intermediate record, for upstreams that can check nothing. Between the decision and the call stands a record of
 * ours; what the upstream did becomes true for us only by completing that record, and only its present owner can.
 *
 *   (none) ──claim──▶ OPEN(token) ──complete, by that token alone──▶ DONE(result)
 *                        └──a newer token: look at the world first──▶ OPEN(newer) | DONE
 *
 * It cannot keep a stale owner's request from reaching the upstream; nothing on our side can. It keeps the stale answer
 * from counting, and a successor from sending blindly what may have been sent. Inside a run use an effect, which does all
 * of this by itself.
 */
interface CallRecord {
  readonly state: "OPEN" | "DONE";
  readonly scope: string;
  readonly token: bigint;
  /** Store time until which whoever claimed it may still send. */
  readonly sendUntil: number;
  readonly result?: unknown;
}

export interface RecordedCallOptions<R> {
  /** What the world says about an act whose owner did not tell how it went. Without it such an act stays unknown. */
  readonly observe?: (key: string) => Promise<Observation<R>>;
  /** How long after its claim an owner may still send: until then "absent" proves nothing. Default 30 s. */
  readonly sendWithin?: Duration;
}

/** Where the records are: values of a store. */
export interface RecordStore {
  readonly store: Pick<Store, "read" | "intake">;
  readonly tenant: string;
}

/**
 * Carries out `act` under `key`, at most once as far as we can know, and hands back its recorded result ever after.
 * TAPE_FENCED: a newer owner has it. TAPE_OUTCOME_UNKNOWN: an earlier owner may have done it, and nobody can tell yet.
 *
 * @example
 * const receipt = await recordedAct(app, lease, "invoice-17", () => printer.print(invoice), { observe });
 */
export async function recordedCall<R>(
  place: RecordStore,
  bearer: TokenHolder,
  key: string,
  act: () => Promise<R>,
  options: RecordedCallOptions<R> = {},
): Promise<R> {
  assertHolder(bearer);
  const sendMs = durationOf(`act ${key}`, "sendWithin", options.sendWithin, 30_000);
  const name = `tape.act/${key}`;
  const { store, tenant } = place;
  const found = await store.read.value(tenant, name);
  const record = found?.deleted === false ? (found.value as CallRecord) : undefined;
  if (record?.state === "DONE") return record.result as R;
  const scope = scopeOf(bearer);
  const write = writer(place, name, { scope, token: bearer.token });
  const version = found?.version ?? 0;
  if (record !== undefined) {
    if (record.scope === scope && record.token > bearer.token) refuseStale(scope, bearer.token, record.token);
    const settled = await observeFirst(place, key, record, options);
    if (settled !== undefined) {
      await write({ state: "DONE", sendUntil: record.sendUntil, result: settled.value }, version);
      return settled.value;
    }
  }
  const sendUntil = (await store.read.now()) + sendMs;
  const claimed = await write({ state: "OPEN", sendUntil }, version);
  assertHolder(bearer); // the claim took its time
  if ((await store.read.now()) >= sendUntil) {
    throw new TapeError("TAPE_STORE_BUSY", `${key}: the time to send has passed; nothing was sent`, { key });
  }
  const result = await act().catch(async (error: unknown) => {
    // Surely nothing happened: the next try need not ask the world. Any other error leaves the record open.
    if (error instanceof NotSent || error instanceof DefiniteFailure)
      await store.intake.deleteValue(tenant, name, claimed);
    throw error;
  });
  await write({ state: "DONE", sendUntil, result }, claimed);
  return result;
}

/** Conditional on the version: of all who saw the same record one goes on, and the others learn that they are stale. */
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

/** undefined: it surely did not happen, and will not. */
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
      ? "there is no way to look"
      : seen.observed === "absent"
        ? `its owner may still send for ${Math.ceil(left)} ms`
        : seen.why;
  const message = `${key} was begun under token ${record.token} and not completed: ${why}`;
  throw new TapeError("TAPE_OUTCOME_UNKNOWN", message, { key, token: String(record.token), leftMs: Math.max(0, left) });
}
