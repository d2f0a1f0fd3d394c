import type { FeedRecord } from "../../src/store/contract/store.ts";
import { type AskValue, askName } from "../ask-gate.ts";
import type { Evidence } from "../evidence.ts";
import { talker } from "../plan-talk.ts";
import { inboxOf, mainJournals } from "./journal.ts";
import { across, combine, each, exempt, type Invariant, notApplicable } from "./judge.ts";

type ReplySent = Extract<FeedRecord, { kind: "reply.sent" }>;
type SignalSent = Extract<FeedRecord, { kind: "signal.sent" }>;

const isReply = (record: FeedRecord): record is ReplySent => record.kind === "reply.sent";
const isSignal = (record: FeedRecord): record is SignalSent => record.kind === "signal.sent";

/** Journal and inbox of the talker, if it was started. */
function talkOf(evidence: Evidence) {
  const journal = mainJournals(evidence).find(({ id }) => id === talker);
  return journal && { ...journal, inbox: inboxOf(evidence, journal.journal).filter(isSignal) };
}

/** A reply names the request that it answers, and everyone who asked with that key got this reply. */
export const repliesMatch: Invariant = (evidence) => {
  const talk = talkOf(evidence);
  if (talk === undefined) return notApplicable;
  const replies = each(talk.records.filter(isReply), ({ seq, data: { note, value, error } }) => {
    const request = talk.inbox.find((one) => one.seq === note)?.data;
    if (request?.name !== askName) return [`reply ${seq} answers note ${note}, which is no request`];
    const { key, from } = request.value as AskValue;
    if (from === undefined) return exempt; // the answer to a gate that was still open after the heal
    const text =
      value === undefined ? (error as Error).message : `answered ${Object.values(value as object).join(" from ")}`;
    return text.endsWith(`${key} from ${from}`) ? [] : [`reply ${seq} to ${key} from ${from} is ${text}`];
  });
  const got = each(evidence.asks, ({ key, to, answered, code }) => {
    if (to === undefined) return exempt;
    const note = talk.inbox.find(({ data }) => data.key === key);
    const sender = (note?.data.value as AskValue | undefined)?.from;
    return to === key && answered === sender
      ? []
      : [`a client asked ${key} and got the reply to ${to} from ${answered} (${code ?? "value"})`];
  });
  return combine([replies, got]);
};

/** A key is one request and gets one reply. A client with a reply, or with none, has the truth. */
export const oneRequestPerKey: Invariant = (evidence) => {
  const talk = talkOf(evidence);
  if (talk === undefined) return notApplicable;
  const keys = [...new Set(talk.inbox.flatMap(({ data }) => (data.asks === true ? (data.key ?? []) : [])))];
  const requests = each(keys, (key) => {
    const notes = talk.inbox.filter(({ data }) => data.key === key).map(({ seq }) => seq);
    const replies = talk.records.filter((one) => isReply(one) && notes.includes(one.data.note ?? 0));
    return [
      ...(notes.length === 1 ? [] : [`${key} is in the inbox ${notes.length} times`]),
      ...(replies.length <= 1 ? [] : [`${key} was answered ${replies.length} times`]),
    ];
  });
  const clients = each(evidence.asks, ({ key, to, code }) => {
    const note = talk.inbox.find(({ data }) => data.key === key)?.seq;
    const answered = talk.records.some((one) => isReply(one) && one.data.note === note);
    if (to !== undefined) return answered ? [] : [`a client got a reply to ${key}, which the journal does not have`];
    return answered ? [`a client got ${code} for ${key}, which was answered`] : [];
  });
  return combine([requests, clients]);
};

/** Readers see what a record of the journal has published, never an older one after a newer one. */
export const publishedIsFenced: Invariant = (evidence) => {
  const talk = talkOf(evidence);
  if (talk === undefined) return notApplicable;
  const seen = new Map<string, number>();
  const shown = each(evidence.published, ({ name, value, seq }) => {
    const before = seen.get(name) ?? 0;
    seen.set(name, seq);
    const record = talk.records.find((one) => one.seq === seq);
    const isThere = record?.kind === "state.published" && record.data.name === name && record.data.value === value;
    return [
      ...(isThere ? [] : [`readers saw ${name} ${value} of record ${seq}, which does not have it`]),
      ...(seq >= before ? [] : [`readers saw ${name} of record ${seq} after that of record ${before}`]),
    ];
  });
  const last = new Map<string, number>();
  for (const record of talk.records) if (record.kind === "state.published") last.set(record.data.name, record.seq);
  const ends = each(last, ([name, seq]) =>
    seen.get(name) === seq ? [] : [`${name} shows record ${seen.get(name)} at the end, its last one is ${seq}`],
  );
  return combine([shown, ends]);
};

/** A callback opens once, by its own token; a wrong token opens nothing. */
export const callbacksOnce: Invariant = (evidence) => {
  const talk = talkOf(evidence);
  if (talk === undefined) return notApplicable;
  const gates = each(talk.records, (opened) => {
    if (opened.kind !== "gate.opened" || opened.data.callback === undefined) return exempt;
    const { pos } = opened.data;
    const notes = talk.inbox.filter(({ data }) => data.pos === pos).map(({ seq }) => seq);
    const found = notes.length <= 1 ? [] : [`the callback at ${pos} was called ${notes.length} times`];
    const resolved = talk.records.find((one) => one.kind === "gate.resolved" && one.data.pos === pos);
    if (resolved?.kind !== "gate.resolved" || resolved.data.to !== "RECEIVED") return found;
    return resolved.data.note === notes[0]
      ? found
      : [...found, `the callback at ${pos} took note ${resolved.data.note}`];
  });
  const opened = evidence.callbackCalls.filter(({ result }) => result === "opened").map(({ token }) => token);
  const calls = each(evidence.callbackCalls, ({ wrong, token, result }) => {
    if (wrong !== undefined) return result === "TAPE_NOT_FOUND" ? [] : [`a wrong token (${wrong}) got ${result}`];
    if (opened.indexOf(token) !== opened.lastIndexOf(token)) return [`${token} opened its gate twice`];
    return result === "opened" || result === "duplicate" || result === "TAPE_NOT_FOUND"
      ? []
      : [`a token got ${result}`];
  });
  return across([gates, calls], (one) => one);
};
