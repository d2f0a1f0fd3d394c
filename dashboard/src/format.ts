/** How times, amounts, values and reasons read. */

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

/** "2026-11-16 06:00:00" in the browser's time zone. */
export function formatTime(at: number): string {
  const pad = (number: number): string => String(number).padStart(2, "0");
  const date = new Date(at);
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/** Budgets count whole millionths. */
export const formatAmount = (millionths: number): string =>
  (millionths / 1_000_000).toLocaleString("en", { maximumFractionDigits: 6 });

/** "12,345" */
export const formatNumber = (value: number): string => value.toLocaleString("en", { maximumFractionDigits: 6 });

/** "$0.0123": money of one call is often below a cent. */
export const formatUsd = (usd: number): string =>
  `$${usd.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: usd < 1 ? 6 : 2 })}`;

/** "1 run", "3 runs". */
export const plural = (count: number, noun: string): string => `${count} ${count === 1 ? noun : `${noun}s`}`;

interface Envelope {
  readonly $codec: unknown;
  readonly data: unknown;
  readonly types?: Readonly<Record<string, string>>;
}

const isEnvelope = (json: unknown): json is Envelope =>
  typeof json === "object" && json !== null && !Array.isArray(json) && Object.hasOwn(json, "$codec");

/** A value that JSON cannot hold travels in an envelope: readable JSON, and a table of the types it stands for. */
export function unwrap(json: unknown): unknown {
  if (!isEnvelope(json)) return json;
  if (json.$codec !== "text" || typeof json.data !== "string") return json.data;
  return unwrap(parseJson(json.data));
}

/** The parsed text; the text itself if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** "/at date, /id bigint": the types that an envelope names. */
export function typesOf(json: unknown): string {
  if (!isEnvelope(json) || json.types === undefined) return "";
  return Object.entries(json.types)
    .map(([path, type]) => `${path} ${type}`.trim())
    .join(", ");
}

export function prettyJson(value: unknown): string {
  return value === undefined ? "" : JSON.stringify(unwrap(value), null, 2);
}

/** "invoice: 7, amount: 1240": in one line the outermost braces and quotes are noise. */
function oneLine(value: unknown): string {
  const plain = (part: unknown): string => (typeof part === "string" ? part : (JSON.stringify(part) ?? ""));
  if (typeof value !== "object" || value === null || Array.isArray(value)) return plain(value);
  return Object.entries(value)
    .map(([key, part]) => `${key}: ${plain(part)}`)
    .join(", ");
}

export function brief(json: unknown, maxChars = 90): string {
  const value = unwrap(json);
  if (value === undefined || value === null) return "";
  const text = oneLine(value);
  return text.length <= maxChars ? text : `${text.slice(0, maxChars - 1)}…`;
}

export const sentence = (text: string): string =>
  text === "" ? "" : `${text[0]!.toUpperCase()}${text.slice(1)}${/[.…!?]$/.test(text) ? "" : "."}`;

/** Why an effect has its status. */
const reasons: Readonly<Record<string, string>> = {
  ack_lost: "response lost: it may have happened",
  lease_lost: "owner lost its lease during the attempt",
  run_ending: "may have happened, not sent again: the run is ending",
  not_sent: "not sent",
  definite: "rejected by the upstream",
  exhausted: "every attempt failed",
  returned: "response received",
  observed: "observed: confirmed",
  absent: "observed: absent",
  ABSENT: "observed: absent",
  duplicate: "observed: happened more than once",
  inconclusive: "observed: inconclusive",
  unobservable: "cannot be observed",
  evidence: "settled by late evidence",
  operator: "resolved by an operator",
  timeout: "no response in time: it may have happened",
};

export const describeReason = (reason: string | null | undefined): string =>
  reason === null || reason === undefined ? "" : (reasons[reason] ?? reason.replaceAll("_", " "));

/** Why a term started. */
const startReasons: Readonly<Record<string, string>> = {
  start: "first owner",
  wake: "woken by a note or a timer",
  release: "released by previous owner",
  stalled: "previous owner stalled",
  recovery: "previous owner crashed",
  timeout: "previous owner's lease expired",
  manual: "taken over by an operator",
  cancellation: "cancel requested",
};

export const describeStart = (reason: string): string => startReasons[reason] ?? reason;

/** Ends that the owner did not choose: the next term is a takeover. */
const takeoverEnds: ReadonlySet<string> = new Set(["expired", "manual", "stalled", "superseded"]);
export const wasTaken = (endReason: string | undefined): boolean =>
  endReason !== undefined && takeoverEnds.has(endReason);

const maxCauses = 6;

/** Why a run failed: its stored error and the causes of that, in one line. */
export function describeFailure(outcome: unknown): string {
  const parts: string[] = [];
  for (let error = unwrap(outcome); parts.length < maxCauses && error !== undefined && error !== null; ) {
    if (typeof error !== "object") return [...parts, String(error)].join("; cause: ");
    const { name, message, cause } = error as { name?: unknown; message?: unknown; cause?: unknown };
    if (typeof message !== "string") return [...parts, JSON.stringify(error)].join("; cause: ");
    const text = typeof name === "string" && name !== "TapeError" ? `${name}: ${message}` : message;
    if (!parts.some((part) => part.includes(text))) parts.push(text);
    error = cause;
  }
  return parts.join("; cause: ");
}
