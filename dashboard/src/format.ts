/** How times, amounts and values read. */

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

/** "3 min 20 s", "1.2 s", "45 ms": at most two units. */
export function formatDuration(ms: number): string {
  const size = Math.abs(ms);
  if (size < 1_000) return `${Math.round(size)} ms`;
  if (size < 10_000) return `${(size / 1_000).toFixed(1)} s`;
  const first = units.findIndex(([, unit]) => size >= unit);
  const [name, unit] = units[first]!;
  const whole = Math.floor(size / unit);
  const next = units[first + 1];
  const rest = next === undefined ? 0 : Math.floor((size - whole * unit) / next[1]);
  return rest === 0 ? `${whole} ${name}` : `${whole} ${name} ${rest} ${next![0]}`;
}

/** One unit is enough for an age. */
const roughly = (ms: number): string => formatDuration(ms).split(" ", 2).join(" ");

export const ago = (at: number, now: number): string => (now - at < 1_000 ? "just now" : `${roughly(now - at)} ago`);

export function formatTime(at: number): string {
  const pad = (number: number, places = 2): string => String(number).padStart(places, "0");
  const date = new Date(at);
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/** Budgets count whole millionths. */
export const formatAmount = (millionths: number): string =>
  (millionths / 1_000_000).toLocaleString("en", { maximumFractionDigits: 6 });

interface Envelope {
  readonly $codec: unknown;
  readonly data: unknown;
  readonly types?: Readonly<Record<string, string>>;
}

const isEnvelope = (json: unknown): json is Envelope =>
  typeof json === "object" && json !== null && !Array.isArray(json) && Object.hasOwn(json, "$codec");

/** A value that JSON cannot hold comes in an envelope: JSON that reads well, and a table of what it stands for. */
export function unwrap(json: unknown): unknown {
  if (!isEnvelope(json)) return json;
  if (json.$codec !== "text" || typeof json.data !== "string") return json.data;
  return unwrap(parseJson(json.data));
}

/** Text that ought to be JSON, as what it says. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** "/at date, /id bigint": what JSON does not say of itself. */
export function typesOf(json: unknown): string {
  if (!isEnvelope(json) || json.types === undefined) return "";
  return Object.entries(json.types)
    .map(([path, type]) => `${path} ${type}`.trim())
    .join(", ");
}

export function prettyJson(value: unknown): string {
  return value === undefined ? "" : JSON.stringify(unwrap(value), null, 2);
}

/** "invoice: 7, amount: 1240": the outermost braces and quotes say nothing in a line. */
function lineOf(value: unknown): string {
  const plain = (one: unknown): string => (typeof one === "string" ? one : (JSON.stringify(one) ?? ""));
  if (typeof value !== "object" || value === null || Array.isArray(value)) return plain(value);
  return Object.entries(value)
    .map(([key, one]) => `${key}: ${plain(one)}`)
    .join(", ");
}

export function brief(given: unknown, most = 90): string {
  const value = unwrap(given);
  if (value === undefined || value === null) return "";
  const text = lineOf(value);
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

export const sentence = (text: string): string =>
  text === "" ? "" : `${text[0]!.toUpperCase()}${text.slice(1)}${/[.…!?]$/.test(text) ? "" : "."}`;

/** Reasons of the journal in words. */
const reasons: Readonly<Record<string, string>> = {
  ack_lost: "the answer was lost: it may have happened",
  lease_lost: "its owner lost the lease while it was under way",
  not_sent: "it was surely not sent",
  definite: "the other side refused it",
  returned: "it answered",
  observed: "somebody looked, and it was there",
  absent: "somebody looked, and it was not there",
  inconclusive: "somebody looked, and could not tell",
  operator: "a person settled it",
  timeout: "no answer in time: it may have happened",
};

export const describeReason = (reason: string | null | undefined): string =>
  reason === null || reason === undefined ? "" : (reasons[reason] ?? reason.replaceAll("_", " "));

const termReasons: Readonly<Record<string, string>> = {
  start: "first owner",
  wake: "woken by a note or a timer",
  release: "handed on by the owner before",
  stalled: "the owner before made no progress",
  recovery: "the owner before was gone",
  timeout: "the time of the owner before ran out",
  manual: "taken over by a person",
  cancellation: "a cancel was asked for",
};

export const describeStart = (reason: string): string => termReasons[reason] ?? reason;

/** Ends that an owner did not choose: the next term is a takeover. */
const againstWill: ReadonlySet<string> = new Set(["expired", "manual", "stalled", "superseded"]);
export const wasTaken = (end: string | undefined): boolean => end !== undefined && againstWill.has(end);

/** Why a run did not end well: the error it was stored with, and its causes, in one line. */
export function describeFailure(outcome: unknown): string {
  const parts: string[] = [];
  for (let one = unwrap(outcome); parts.length < 6 && one !== undefined && one !== null; ) {
    if (typeof one !== "object") return [...parts, String(one)].join("; cause: ");
    const { name, message, cause } = one as { name?: unknown; message?: unknown; cause?: unknown };
    if (typeof message !== "string") return [...parts, JSON.stringify(one)].join("; cause: ");
    const text = typeof name === "string" && name !== "TapeError" ? `${name}: ${message}` : message;
    if (!parts.some((part) => part.includes(text))) parts.push(text);
    one = cause;
  }
  return parts.join("; cause: ");
}
