import { fingerprint } from "../base/canonical.ts";
import { type Awaitable, chain, chainAll } from "../base/chain.ts";
import { isSealed } from "../base/codec.ts";
import { isHashed, payloadFields, textFields } from "../model/payloads.ts";
import type { JournalRecord, NewRecord, RecordData, RecordKind } from "../model/records.ts";
import type { PayloadContext } from "./payload-codec.ts";
import {
  debouncePlace,
  type FoundAt,
  type PayloadCoder,
  runPlace,
  schedulePlace,
  valuePlace,
} from "./payload-coder.ts";
import type { RunSubject } from "./run-subjects.ts";

type Fields = Record<string, unknown>;
type AnyRecord = { readonly kind: string; readonly data: unknown };

/** The journal of a record: its tenant, its number, and the run that it belongs to. */
export interface RecordOwner {
  readonly tenant: string;
  readonly journal: number;
  readonly run: RunSubject | undefined;
}

const placeOf = ({ run, journal }: RecordOwner): string =>
  run === undefined ? `journal:${journal}` : runPlace(run.id);

/** The payloads of a record sealed, and what stores compare in it hashed. */
export function sealRecord(coder: PayloadCoder, record: NewRecord, owner: RecordOwner): Awaitable<NewRecord> {
  return chain(sealFields(coder, record, owner), (data) => ({ ...record, data }) as NewRecord);
}

function sealFields(coder: PayloadCoder, record: AnyRecord, owner: RecordOwner): Awaitable<Fields> {
  const data = record.data as Fields;
  switch (record.kind as RecordKind) {
    case "child.started":
      return sealChild(coder, record.data as RecordData<"child.started">, owner);
    case "effect.intended":
      return sealIntent(coder, record.data as RecordData<"effect.intended">, owner);
    case "gate.opened":
      return sealBound(coder, data, "payload", contextOf("gate.opened", "payload", data, owner));
    case "signal.sent":
      return sealBound(coder, data, "value", contextOf("signal.sent", "value", data, owner));
    case "run.stuck":
      return sealStuck(coder, data, owner);
    case "fork.kept": {
      const kept = (data.records as AnyRecord[]).map((one) =>
        chain(sealFields(coder, one, owner), (sealed) => ({ kind: one.kind, data: sealed })),
      );
      return chain(chainAll(kept), (records) => ({ ...data, records }));
    }
    default:
      return sealListed(coder, record, owner);
  }
}

/** Seals the fields that the table names. */
function sealListed(coder: PayloadCoder, { kind, data: given }: AnyRecord, owner: RecordOwner): Awaitable<Fields> {
  const data = given as Fields;
  const fields = (payloadFields[kind as RecordKind] ?? []).filter((path) => at(data, path) !== undefined);
  if (fields.length === 0) return data;
  const sealed = fields.map((field) => {
    const context = contextOf(kind, field, data, owner);
    const value = at(data, field);
    return textFields.has(`${kind} ${field}`) ? coder.sealText(value as string, context) : coder.seal(value, context);
  });
  return chain(chainAll<unknown>(sealed), (values) =>
    fields.reduce((all, field, k) => replaced(all, field, values[k]), data),
  );
}

function contextOf(kind: string, field: string, data: Fields, owner: RecordOwner): PayloadContext {
  const { tenant, run } = owner;
  const place = kind === "value.written" ? valuePlace(data.key as string) : placeOf(owner);
  if (kind === "value.written" || run === undefined) return { tenant, kind, field, place };
  return { tenant, kind, field, place, run: run.id, workflow: run.workflow, labels: run.labels };
}

/** The input becomes that of the child, so it belongs to the child from the start. */
function sealChild(
  coder: PayloadCoder,
  data: RecordData<"child.started">,
  { tenant }: RecordOwner,
): Awaitable<RecordData<"child.started">> {
  const { id: run, workflow, labels = {}, input, inputHash: also } = data;
  const context = { tenant, kind: "child.started", field: "input", place: runPlace(run), run, workflow, labels };
  return chain(coder.seal(input, context, { hashed: true, also }), (sealed) =>
    isSealed(sealed) && sealed !== input
      ? { ...data, input: sealed, inputHash: fingerprint(sealed) }
      : { ...data, input: sealed },
  );
}

/** The scope of an effect's business key, as the store has it. */
export const businessScope = (scope: string): string => `business key of ${scope}`;

function sealIntent(
  coder: PayloadCoder,
  data: RecordData<"effect.intended">,
  owner: RecordOwner,
): Awaitable<RecordData<"effect.intended">> {
  const { tenant } = owner;
  const { name, connector, businessKey, argsHash, args } = data;
  const context = contextOf("effect.intended", "args", data, owner);
  const scope = businessScope(connector ?? name);
  return chain(coder.seal(args, context, { also: argsHash }), (sealed) =>
    chain(coder.hash(argsHash, tenant, `arguments of ${context.place}`), (hash) => {
      const rest = { ...data, args: sealed, argsHash: hash };
      if (businessKey === undefined) return rest;
      return chain(coder.hash(businessKey, tenant, scope), (hashed) => ({ ...rest, businessKey: hashed }));
    }),
  );
}

/** What an approval is bound to is a hash of arguments, which could be guessed: stores compare a keyed one. */
export function sealBound<D extends object>(
  coder: PayloadCoder,
  data: D,
  field: keyof D & string,
  context: PayloadContext,
): Awaitable<D> {
  const { binds } = data as { readonly binds?: string };
  // As a list without the key has shown it.
  if (binds !== undefined && isHashed(binds))
    return chain(coder.seal(data[field], context), (sealed) => ({ ...data, [field]: sealed }));
  return chain(coder.seal(data[field], context, { also: binds }), (sealed) => {
    const rest = sealed === undefined ? data : { ...data, [field]: sealed };
    if (binds === undefined) return rest;
    return chain(coder.hash(binds, context.tenant, bindsScope(context.place)), (hash) => ({ ...rest, binds: hash }));
  });
}

const bindsScope = (place: string): string => `binding of ${place}`;

/** The upstream's last words are quoted in the reason, and stand alone in `detail.last`. */
const hiddenWords = "[encrypted]";

function sealStuck(coder: PayloadCoder, data: Fields, owner: RecordOwner): Awaitable<Fields> {
  const last = at(data, "detail.last");
  return chain(sealListed(coder, { kind: "run.stuck", data }, owner), (sealed) => {
    if (typeof last !== "string" || last === "" || !isSealed(at(sealed, "detail.last"))) return sealed;
    return { ...sealed, reason: (data.reason as string).replaceAll(last, hiddenWords) };
  });
}

/** The payloads of a record opened, as far as this process can. */
export async function openRecord<R extends JournalRecord>(
  coder: PayloadCoder,
  record: R,
  owner: RecordOwner,
  relatives: Relatives,
): Promise<R> {
  const data = await openFields(coder, record, owner, relatives);
  return data === record.data ? record : ({ ...record, data } as R);
}

/** What the places of copied payloads follow from. */
export interface Relatives {
  /** The id of the run with this journal. */
  idOf(journal: number): Promise<string | undefined>;
  /** The runs from which the run was forked: operators without keys copy payloads as they are. */
  sources(): Promise<readonly string[]>;
}

async function openFields(
  coder: PayloadCoder,
  record: AnyRecord,
  owner: RecordOwner,
  relatives: Relatives,
  forkedFrom: readonly string[] = [],
): Promise<Fields> {
  const { kind } = record;
  let data = record.data as Fields;
  if (kind === "fork.kept") {
    const sources = (await relatives.sources()).map(runPlace);
    const records = await Promise.all(
      (data.records as AnyRecord[]).map(async (one) => ({
        kind: one.kind,
        data: await openFields(coder, one, owner, relatives, sources),
      })),
    );
    return { ...data, records };
  }
  for (const field of payloadFields[kind as RecordKind] ?? []) {
    const stored = at(data, field);
    const parts = sealedParts(stored);
    if (parts.length > 0) {
      const at = { tenant: owner.tenant, kind, field, places: [placeOf(owner), ...forkedFrom] };
      data = replaced(data, field, await openParts(coder, stored as Fields, parts, at));
      continue;
    }
    if (!isSealed(stored) && !(textFields.has(`${kind} ${field}`) && typeof stored === "string")) continue;
    const places = [...(await placesOf(record, owner, relatives)), ...forkedFrom];
    const found = { tenant: owner.tenant, kind, field, places };
    if (typeof stored === "string") data = replaced(data, field, await coder.openText(stored, found));
    else {
      const { value, also } = await coder.openBoth(stored, found);
      data = restored(kind, replaced(data, field, value), field, also);
    }
  }
  return data;
}

/**
 * An obligation whose effect was settled without the key holds what the effect had: arguments and result, each sealed
 * alone.
 */
export const sealedParts = (stored: unknown): string[] =>
  typeof stored === "object" && stored !== null && !isSealed(stored)
    ? ["args", "result"].filter((part) => isSealed((stored as Fields)[part]))
    : [];

export async function openParts(
  coder: PayloadCoder,
  stored: Fields,
  parts: readonly string[],
  at: FoundAt,
): Promise<unknown> {
  const opened = { ...stored };
  for (const part of parts) {
    const value = await coder.open(stored[part], at);
    if (isSealed(value)) return value; // the whole cannot be used
    opened[part] = value;
  }
  return opened;
}

/** The places that may own a payload of this record. */
async function placesOf(record: AnyRecord, owner: RecordOwner, relatives: Relatives): Promise<string[]> {
  const own = placeOf(owner);
  const data = record.data as Fields;
  switch (record.kind as RecordKind) {
    case "run.created": {
      const { schedule, debounce, workflow, fork, forkedFrom } = data as RecordData<"run.created">;
      const places = [own, ...sourcesOf({ fork, forkedFrom }).map(runPlace)];
      if (schedule !== undefined) places.push(schedulePlace(schedule));
      if (debounce !== undefined || fork !== undefined) places.push(debouncePlace(workflow));
      return places;
    }
    case "start.moved":
      return owner.run === undefined ? [] : [debouncePlace(owner.run.workflow)];
    case "child.settled":
    case "child.started":
      return [runPlace(data.id as string)];
    case "effect.outcome": {
      const id = typeof data.run === "number" ? await relatives.idOf(data.run) : undefined;
      return id === undefined ? [own] : [own, runPlace(id)];
    }
    case "value.written":
      return [valuePlace(data.key as string)];
    default:
      return [own];
  }
}

/** The runs whose records a fork may keep. */
export function sourcesOf({ fork, forkedFrom }: Partial<RecordData<"run.created">>): string[] {
  return [...(forkedFrom === undefined ? [] : [forkedFrom]), ...(fork?.seeds ?? []).map(({ run }) => run)];
}

/** Replay compares plain hashes of what the code passes; they are sealed with the payload, or follow from it. */
function restored(kind: string, data: Fields, field: string, also: string | undefined): Fields {
  if (isSealed(at(data, field))) return data;
  switch (kind as RecordKind) {
    case "run.created":
    case "start.moved":
    case "child.started":
      return { ...data, inputHash: also ?? fingerprint(data.input) };
    case "effect.intended":
      return also === undefined ? data : { ...data, argsHash: also };
    case "gate.opened":
    case "signal.sent":
      return also === undefined ? data : { ...data, binds: also };
    case "run.stuck": {
      const last = at(data, "detail.last");
      return { ...data, reason: (data.reason as string).replaceAll(hiddenWords, () => String(last)) };
    }
    default:
      return data;
  }
}

/** The field at a path of at most two names. */
function at(data: Fields, path: string): unknown {
  const [first, second] = path.split(".") as [string, string?];
  const field = data[first];
  if (second === undefined) return field;
  return typeof field === "object" && field !== null ? (field as Fields)[second] : undefined;
}

function replaced(data: Fields, path: string, value: unknown): Fields {
  const [first, second] = path.split(".") as [string, string?];
  return { ...data, [first]: second === undefined ? value : { ...(data[first] as Fields), [second]: value } };
}
