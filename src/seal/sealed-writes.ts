import { chain } from "../base/chain.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";
import type { ItemResult } from "../model/lease.ts";
import type { Limits } from "../model/limits.ts";
import { payloadFields } from "../model/payloads.ts";
import type { NewRecord } from "../model/records.ts";
import type {
  AppendRequest,
  AppendResult,
  ChunkAppend,
  FencedOps,
  IntakeOps,
  NewChunk,
  RunSpec,
  StartSignal,
  StepTransaction,
  TransactionOps,
} from "../store/contract/store.ts";
import { checkName, checkText } from "../store/validate/basic.ts";
import type { PayloadContext } from "./payload-codec.ts";
import { debouncePlace, type PayloadCoder, runPlace, valuePlace } from "./payload-coder.ts";
import { type RecordOwner, sealBound, sealRecord } from "./records.ts";
import type { RunSubjects } from "./run-subjects.ts";

type Signal = Parameters<IntakeOps["signal"]>[2];

/** The writes of a store whose payloads are sealed before they reach it. */
export class SealedWrites {
  readonly #coder: PayloadCoder;
  readonly #subjects: RunSubjects;
  readonly #limits: Limits;
  /** A repeated append must be the same append: the store compares what it has with what it gets. */
  readonly #sealed = new WeakMap<NewRecord, { readonly owner: string; readonly record: Promise<NewRecord> }>();

  constructor(coder: PayloadCoder, subjects: RunSubjects, limits: Limits) {
    this.#coder = coder;
    this.#subjects = subjects;
    this.#limits = limits;
  }

  intake(inner: IntakeOps): IntakeOps {
    return {
      ...inner,
      createRuns: (tenant, specs, first) => this.#createRuns(inner, tenant, specs, first),
      signal: async (tenant, run, signal) => inner.signal(tenant, run, await this.#signal(tenant, run, signal)),
      leaveEvidence: async (tenant, attempt, evidence) => {
        if (
          !Number.isSafeInteger(attempt?.run) ||
          attempt.run < 1 ||
          typeof evidence !== "object" ||
          evidence === null
        ) {
          return inner.leaveEvidence(tenant, attempt, evidence);
        }
        const { value, error, ...rest } = evidence;
        const seal = await this.#sealerOf(tenant, attempt.run, "effect.evidence");
        const sealed = { value: await seal("value", value), error: await seal("error", error) };
        const given = Object.entries(sealed).filter(([, one]) => one !== undefined);
        return inner.leaveEvidence(tenant, attempt, { ...rest, ...Object.fromEntries(given) });
      },
      fireSchedule: async (tenant, id, version, nextAt, runs, spec) => {
        if (!Array.isArray(runs)) return inner.fireSchedule(tenant, id, version, nextAt, runs, spec);
        const sealed = await Promise.all(runs.map((run: RunSpec) => this.#spec(tenant, run)));
        return inner.fireSchedule(tenant, id, version, nextAt, sealed, spec);
      },
      putValue: async (tenant, key, value, when) => {
        const context = { tenant, kind: "value", field: "value", place: valuePlace(key) };
        const row = await inner.putValue(tenant, key, await this.#coder.seal(value, context), when);
        // A repeated call gets the response to the first, whose value may differ.
        return { ...row, value: await this.#coder.open(row.value, { ...context, places: [context.place] }) };
      },
      deliver: async (tenant, token, body) => {
        // The token begins with the number of the journal; the store verifies it.
        const journal = Number(/^([1-9]\d{0,14})\./.exec(token)?.[1]);
        if (tenant === undefined || body?.value === undefined || Number.isNaN(journal)) {
          return inner.deliver(tenant, token, body);
        }
        const seal = await this.#sealerOf(tenant, journal, "signal.sent");
        return inner.deliver(tenant, token, { ...body, value: await seal("value", body.value) });
      },
    };
  }

  fenced(inner: FencedOps): FencedOps {
    return {
      ...inner,
      append: async (fence, entry) => inner.append(fence, await this.#entry(fence, entry)),
      appendAll: (batch) =>
        eachSealed(
          batch,
          async (item: (typeof batch)[number]) =>
            Array.isArray(item) ? ([item[0], await this.#entry(item[0], item[1])] as const) : item,
          (sealed) => inner.appendAll(sealed),
        ),
      appendChunks: (batch) =>
        eachSealed(
          batch,
          async (item: (typeof batch)[number]) =>
            Array.isArray(item) ? ([item[0], await this.#chunks(item[0], item[1])] as const) : item,
          (sealed) => inner.appendChunks(sealed),
        ),
    };
  }

  within(inner: TransactionOps): TransactionOps {
    return {
      createRun: async (transaction, tenant, spec) =>
        inner.createRun(transaction, tenant, await this.#spec(tenant, spec)),
      signal: async (transaction, tenant, run, signal) =>
        inner.signal(transaction, tenant, run, await this.#signal(tenant, run, signal)),
      step: (source, body) => this.#step(inner.step(source, body)),
    };
  }

  /** The run is looked up before the commit: its record is sealed inside the transaction. */
  #step(step: StepTransaction): StepTransaction {
    return {
      execute: () => step.execute(),
      rollback: () => step.rollback(),
      abort: (error) => step.abort(error),
      commit: async (fence, after, recordOf, begins): Promise<AppendResult> => {
        const owner = await this.#ownerOf(fence);
        const sealed = (value: unknown) => chain(recordOf(value), (record) => sealRecord(this.#coder, record, owner));
        return step.commit(fence, after, sealed, begins);
      },
    };
  }

  async #createRuns(
    inner: IntakeOps,
    tenant: string,
    specs: readonly RunSpec[],
    first: Parameters<IntakeOps["createRuns"]>[2],
  ): ReturnType<IntakeOps["createRuns"]> {
    const results = await eachSealed(
      specs,
      (spec) => this.#spec(tenant, spec),
      (sealed) => inner.createRuns(tenant, sealed, first),
    );
    for (const [k, result] of results.entries()) {
      const { id, workflow, labels = {} } = specs[k] ?? ({} as RunSpec);
      if (result.ok && result.run === undefined) this.#subjects.add(tenant, result.journal, { id, workflow, labels });
    }
    return results;
  }

  /** Inputs of debounced starts may move to another run, so they belong to the workflow. */
  async #spec(tenant: string, spec: RunSpec): Promise<RunSpec> {
    if (typeof spec !== "object" || spec === null) return spec; // the store refuses it
    const { id, workflow, labels = {}, input, unique, debounce, signals } = spec;
    const about = { tenant, kind: "run.created", field: "input", run: id, workflow, labels };
    const place = debounce === undefined ? runPlace(id) : debouncePlace(workflow);
    const sealed = await this.#coder.seal(input, { ...about, place }, { hashed: true });
    // The store cannot compare a hash with the queue's key, which operators see.
    if (unique?.onConflict === "cancel" && unique.key !== spec.key) throw replacesOther();
    const hashOf = async (key: string, of: string): Promise<string> => {
      checkName(`${of}.key`, key, this.#limits);
      return this.#coder.hash(key, tenant, `${of} key of ${workflow}`);
    };
    return {
      ...spec,
      input: sealed,
      ...(unique && { unique: { ...unique, key: await hashOf(unique.key, "unique") } }),
      ...(debounce && { debounce: { ...debounce, key: await hashOf(debounce.key, "debounce") } }),
      ...(Array.isArray(signals) && {
        signals: await Promise.all(signals.map((one: StartSignal) => this.#signal(tenant, id, one, about))),
      }),
    };
  }

  async #signal<S extends Pick<Signal, "value" | "binds">>(
    tenant: string,
    run: string,
    signal: S,
    given?: Partial<PayloadContext>,
  ): Promise<S> {
    if (typeof signal !== "object" || signal === null) return signal;
    checkBinds(signal.binds, this.#limits);
    const { workflow, labels } = given ?? (await this.#subjects.byId(tenant, run)) ?? {};
    const about = { ...(workflow !== undefined && { workflow }), ...(labels && { labels }) };
    const context = { ...about, tenant, kind: "signal.sent", field: "value", place: runPlace(run), run };
    return sealBound(this.#coder, signal, "value", context);
  }

  /** A payload of a run, for calls that are not the store's. */
  async forRun(tenant: string, run: string, kind: string, field: string, value: unknown): Promise<unknown> {
    const { workflow, labels } = (await this.#subjects.byId(tenant, run)) ?? {};
    const about = { ...(workflow !== undefined && { workflow }), ...(labels && { labels }) };
    return this.#coder.seal(value, { tenant, kind, field, place: runPlace(run), run, ...about });
  }

  async #ownerOf({ tenant, journal }: Pick<Fence, "tenant" | "journal">): Promise<RecordOwner> {
    return { tenant, journal, run: await this.#subjects.of(tenant, journal) };
  }

  async #sealerOf(tenant: string, journal: number, kind: string) {
    const run = await this.#subjects.of(tenant, journal);
    const about = run && { run: run.id, workflow: run.workflow, labels: run.labels };
    const place = run === undefined ? `journal:${journal}` : runPlace(run.id);
    return (field: string, value: unknown) => this.#coder.seal(value, { tenant, kind, field, place, ...about });
  }

  async #entry(fence: Fence, entry: AppendRequest): Promise<AppendRequest> {
    const { records } = entry ?? {};
    if (!isFence(fence) || !Array.isArray(records) || !records.some(hasPayload)) return entry;
    const owner = await this.#ownerOf(fence);
    return { ...entry, records: await Promise.all(records.map((record) => this.#once(record, owner))) };
  }

  async #once(record: NewRecord, owner: RecordOwner): Promise<NewRecord> {
    if (!hasPayload(record)) return record;
    const name = `${owner.journal} ${owner.tenant}`;
    const known = this.#sealed.get(record);
    if (known?.owner === name) return known.record;
    const sealed = this.#record(record, owner);
    this.#sealed.set(record, { owner: name, record: sealed });
    sealed.catch(() => this.#sealed.delete(record));
    return sealed;
  }

  /** A run becomes STUCK because its key is gone: that must not need the key. */
  async #record(record: NewRecord, owner: RecordOwner): Promise<NewRecord> {
    try {
      this.#checkNames(record);
      return await sealRecord(this.#coder, record, owner);
    } catch (error) {
      if (record.kind !== "run.stuck" || !isTapeError(error)) throw error;
      const { code, next } = (record.data.detail ?? {}) as { readonly code?: unknown; readonly next?: unknown };
      const reason = `${String(code)}: the details cannot be encrypted, because the key is not there`;
      return { kind: "run.stuck", data: { ...record.data, reason, detail: { code, next } } };
    }
  }

  /** A hash is always a name: what it hides must be one, too. */
  #checkNames(record: NewRecord): void {
    const limits = this.#limits;
    if (record.kind === "child.started") checkName("inputHash", record.data.inputHash, limits);
    else if (record.kind === "gate.opened") checkBinds(record.data.binds, limits);
    else if (record.kind === "effect.intended") {
      const { argsHash, businessKey } = record.data;
      checkName("argsHash", argsHash, limits);
      if (businessKey !== undefined) checkName("businessKey", businessKey, limits);
    }
  }

  async #chunks(fence: Fence, append: ChunkAppend): Promise<ChunkAppend> {
    if (!isFence(fence) || !isChunkAppend(append)) return append;
    const seal = await this.#sealerOf(fence.tenant, fence.journal, "chunk");
    const chunk = async (one: NewChunk): Promise<NewChunk> =>
      "value" in one ? { ...one, value: await seal("value", one.value) } : one;
    const streams = await Promise.all(
      append.streams.map(async (stream) => ({ ...stream, chunks: await Promise.all(stream.chunks.map(chunk)) })),
    );
    return { ...append, streams };
  }
}

function checkBinds(binds: string | undefined, limits: Limits): void {
  if (binds !== undefined) checkText("binds", binds, limits);
}

function replacesOther(): TapeError {
  const message = 'onConflict "cancel" needs the key of the queue as the unique key';
  return new TapeError("TAPE_BAD_INPUT", message, { field: "unique.onConflict" });
}

const hasPayload = (record: NewRecord | undefined): boolean =>
  typeof record?.data === "object" &&
  record.data !== null &&
  typeof record.kind === "string" &&
  (record.kind === "fork.kept" || Object.hasOwn(payloadFields, record.kind));

/** Types are not enough, because callers may be JavaScript: what is malformed goes to the store, which refuses it. */
const isFence = (fence: Partial<Fence> | undefined): boolean =>
  typeof fence?.tenant === "string" && Number.isSafeInteger(fence.journal);

const isChunkAppend = (append: Partial<ChunkAppend> | undefined): boolean =>
  Array.isArray(append?.streams) &&
  append.streams.every(
    (stream) =>
      Array.isArray(stream?.chunks) &&
      stream.chunks.every((chunk: unknown) => typeof chunk === "object" && chunk !== null),
  );

/** Items whose payloads cannot be sealed fail alone; the store gets the others. */
async function eachSealed<T, S, R>(
  items: readonly T[],
  seal: (item: T) => Promise<S>,
  write: (sealed: readonly S[]) => Promise<ItemResult<R>[]>,
): Promise<ItemResult<R>[]> {
  if (!Array.isArray(items)) return write(items as never);
  const sealed = await Promise.all(
    items.map((item: T) =>
      seal(item).then(
        (value) => ({ value }),
        (error: unknown) => {
          if (isTapeError(error)) return { error };
          throw error;
        },
      ),
    ),
  );
  const good = sealed.flatMap((one) => ("value" in one ? [one.value] : []));
  const results = good.length === 0 && items.length > 0 ? [] : await write(good);
  let next = 0;
  return sealed.map((one) => ("value" in one ? results[next++]! : { ok: false, error: one.error }));
}

/** Whether a term's first record holds a payload that must be read through the codec. */
export const holdsSealed = (created: string | undefined): boolean => created?.includes('"sealed"') === true;
