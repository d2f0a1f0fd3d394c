import { encode, sizeOf } from "../base/codec.ts";

/** A model reads the result; what is longer is data for a value or a file. */
const maxPlainBytes = 1024 * 1024;

/**
 * The result of a tool as the journal can store it. The tool has done its work, so a result that cannot be stored must
 * not look like a failure, after which a model would call the tool again: its `toJSON`, its JSON copy or a note takes its
 * place.
 */
export function plain(value: unknown, maxBytes = maxPlainBytes): unknown {
  let note = "the result cannot be stored";
  for (const form of [() => value, () => jsonOf(value)]) {
    try {
      const found = form();
      const bytes = sizeOf(encode(found));
      if (bytes <= maxBytes) return found;
      note = `the result has ${bytes} bytes, at most ${maxBytes} are stored`;
      break; // another form of it is no shorter
    } catch {
      // the next form may do
    }
  }
  return { done: true, note };
}

/** JSON calls `toJSON` wherever it finds one. */
function jsonOf(value: unknown): unknown {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError("no JSON");
  return JSON.parse(text);
}
