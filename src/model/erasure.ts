import { decode, ErasedPayload, encode, erasedWord } from "../base/codec.ts";
import { payloadFields, textFields } from "./payloads.ts";
import { encodeBody } from "./record-context.ts";
import type { RecordKind } from "./records.ts";

/**
 * What erasing a run takes from its records: the fields of {@link payloadFields}, the values of labels, and the words
 * below. Kinds, numbers, tokens, times, statuses, names, keys and hashes stay, so that the journal can still be read,
 * counted and folded. A test compares the tables with the schemas: a new text is erased, or listed with the reason why not.
 */

/** Words of callers and code beside the payloads. */
export const wordFields: { readonly [K in RecordKind]?: readonly string[] } = {
  "run.stuck": ["reason"],
  "cancel.requested": ["reason"],
  "signal.sent": ["reason"],
  "scope.closed": ["detail"],
  "obligation.due": ["reason"],
  "children.due": ["reason"],
  "term.started": ["previous.progressNote"],
  "term.ended": ["term.progressNote"],
  "run.ended": ["term.progressNote"],
};

/** Objects of labels: the keys stay, the values go. */
export const labelFields: { readonly [K in RecordKind]?: readonly string[] } = {
  "run.created": ["labels"],
  "run.continued": ["labels"],
  "child.started": ["labels"],
  "labels.set": ["set"],
};

const marker = new ErasedPayload();
/** An erased payload as a column stores it. */
export const erasedText = encode(marker);

type Fields = Readonly<Record<string, unknown>>;

const hasErased = (kind: string): boolean =>
  kind === "fork.kept" ||
  [payloadFields, wordFields, labelFields].some((table) => table[kind as RecordKind] !== undefined);

/** The data of a record without payloads. Erasing it again changes nothing. */
export function erasedData(kind: string, data: Fields): Fields {
  if (kind === "fork.kept") {
    const records = (data.records as readonly { readonly kind: string; readonly data: Fields }[]).map((kept) => ({
      kind: kept.kind,
      data: erasedData(kept.kind, kept.data),
    }));
    return { ...data, records };
  }
  const of = kind as RecordKind;
  let erased = data;
  for (const path of payloadFields[of] ?? [])
    erased = replaced(erased, path, () => (textFields.has(`${kind} ${path}`) ? erasedWord : marker));
  for (const path of wordFields[of] ?? []) erased = replaced(erased, path, () => erasedWord);
  for (const path of labelFields[of] ?? [])
    erased = replaced(erased, path, (labels) => erasedLabels(labels as Record<string, string>));
  return erased;
}

/** The text of a record as a store has it, without payloads. */
export function erasedBody(kind: string, body: string): string {
  if (!hasErased(kind)) return body;
  const { v: _v, ...data } = decode(body) as Record<string, unknown>;
  return encodeBody(erasedData(kind, data));
}

export const erasedLabels = (labels: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.keys(labels).map((key) => [key, erasedWord]));

/** The outcome of an effect, or a reply, as a column stores it: `{ value }`, `{ error }` or `{ refused }`. */
export function erasedResult(text: string): string {
  const fields = Object.keys(decode(text) as object);
  return encode(Object.fromEntries(fields.map((field) => [field, field === "refused" ? erasedWord : marker])));
}

/** A field that is absent or undefined stays so: it holds nothing. An input is marked all the same, so that it says whether the run is erased. */
function replaced(data: Fields, path: string, by: (value: unknown) => unknown): Fields {
  const [first, second] = path.split(".") as [string, string?];
  const field = data[first];
  if (field === undefined && path !== "input") return data;
  if (second === undefined) return { ...data, [first]: by(field) };
  if (typeof field !== "object" || field === null || (field as Fields)[second] === undefined) return data;
  return { ...data, [first]: replaced(field as Fields, second, by) };
}
