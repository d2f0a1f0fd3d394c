import type { Api } from "../api.ts";
import { isObject } from "../json-rpc.ts";
import { numberAt, pageOf, placeOf } from "../paging.ts";
import { readRecords, type WireRecord } from "./run-pages.ts";

/** Requests for pages of a journal that one call makes, at most: a long run has many records that are no turns. */
const maxReads = 10;

interface Turn {
  readonly seq: number;
  readonly at: number;
  readonly turn: string;
  readonly [field: string]: unknown;
}

/**
 * The turns of a run, from the journal alone. A model call notes only the messages that its conversation did not have
 * yet, so a turn has these and the answer, and all turns together are the conversation.
 */
export async function conversationPage(api: Api, run: string, cursor: string | undefined): Promise<object> {
  const place = placeOf(cursor);
  const from = numberAt(place, 1);
  let next = from;
  let more = true;
  const rows: Turn[] = [];
  for (let reads = 0; more && reads < maxReads && rows.length === 0; reads++) {
    const page = await readRecords(api, { run, inbox: false, from: next });
    rows.push(...page.records.flatMap(turnOf));
    next = (page.records.at(-1)?.seq ?? next - 1) + 1;
    more = page.more;
  }
  if (rows.length === 0) return { turns: [], ...(more && { next: String(next) }) };
  const start = { ...place, after: String(from) };
  // Behind the last turn of a page the journal continues after its last record, whatever that was.
  const behind = (turn: Turn) => String(turn === rows.at(-1) ? next : turn.seq + 1);
  return pageOf(start, { field: "turns", rows, more, behind });
}

function turnOf({ seq, at, kind, data }: WireRecord): Turn[] {
  if (!isObject(data)) return [];
  const turn = (name: string, fields: object): Turn[] => [{ seq, at, turn: name, ...fields }];
  switch (kind) {
    case "run.created":
      return turn("start", { input: data.input });
    case "decision.made":
      return turn("model", modelTurn(data));
    case "effect.intended":
      return turn("tool", pick(data, ["pos", "name", "args", "semantics", "businessKey"]));
    case "effect.settled":
      return turn("tool result", pick(data, ["pos", "to", "reason", "value", "error"]));
    case "gate.opened":
      return turn("approval wanted", pick(data, ["pos", "name", "payload", "binds"]));
    case "gate.resolved":
      return turn("approval", pick(data, ["pos", "to", "value"]));
    case "child.started":
      return turn("sub-agent", pick(data, ["pos", "id", "workflow", "input"]));
    case "child.settled":
      return turn("sub-agent result", pick(data, ["pos", "id", "status", "outcome"]));
    case "run.ended":
      return turn("end", pick(data, ["to", "outcome"]));
    default:
      return [];
  }
}

/** An adapter's model call has its messages in a common form; any other decision is shown as its author noted it. */
function modelTurn(data: Readonly<Record<string, unknown>>): object {
  const { request, value } = data;
  const about = pick(data, ["pos", "name", "model", "usage", "rationale", "error"]);
  if (isObject(request) && Array.isArray(request.messages) && isObject(value) && isObject(value.message)) {
    return { ...about, messages: request.messages, answer: value.message, ...pick(value, ["finish"]) };
  }
  return { ...about, ...pick(data, ["request", "response", "value"]) };
}

function pick(data: Readonly<Record<string, unknown>>, fields: readonly string[]): object {
  return Object.fromEntries(fields.flatMap((field) => (data[field] === undefined ? [] : [[field, data[field]]])));
}
