import { z } from "zod";
import { decode, encode } from "../base/codec.ts";
import { defined } from "../base/defined.ts";
import { buildName } from "../model/build-records.ts";
import type { TapeError } from "../model/errors.ts";
import { type Fence, makeFence } from "../model/fence.ts";
import { defaultLimits } from "../model/limits.ts";
import { maxPriority, minPriority, onConflicts } from "../model/queue.ts";
import { errorOf, problemOf } from "./problem.ts";
import { fromWire, isText, mustBeText, toWire } from "./values.ts";

/** The basic schemas of everything on the wire. */

export const name = z.string().min(1).max(512);
export const text = z.string().max(512);
/**
 * Every string, list, record and number that a caller sends has a bound; a test walks the contract and reports any
 * without one. The items of a list are parsed only if the list is not too long.
 */
const maxInteger = Number.MAX_SAFE_INTEGER;
export const whole = z.int().nonnegative().max(maxInteger);
export const journal = z.int().positive().max(maxInteger);
export const ms = z.number().nonnegative();
/** A duration chosen by a caller: at most ten years. */
export const spanMs = z.int().positive().max(315_360_000_000);
/** Milliseconds since 1970, within the range of a Date. */
export const time = z.number().min(-8.64e15).max(8.64e15);
/** A wait chosen by a caller: as long as a duration may be. */
const waitMs = z
  .int()
  .nonnegative()
  .max(100 * 366 * 86_400_000);
/** Rows that a caller requests; a page may hold fewer. */
export const rows = z.int().positive().max(10_000);
export const rowsOrNone = z.int().nonnegative().max(10_000);
/** Text that is stored unchanged and may be as long as a payload. */
export const document = z.string().max(defaultLimits.payloadBytes);

/** Items of one call; a caller with more sends several calls. */
export const maxItems = 1_000;
/** Runs of one call; more than `maxItems`, because a run may be small. */
export const maxSpecs = defaultLimits.batchItems;
export const names = z.array(name).max(maxItems);

/** The page was full, in rows or in bytes; the next one continues after its last row. */
export const more = z.boolean().exactOptional();

const digits = z
  .string()
  .max(19)
  .regex(/^\d{1,19}$/);

/** A JSON number rounds above 2^53, so tokens and nonces are decimal text on the wire. */
export const big = z
  .codec(digits, z.bigint(), { decode: (given) => BigInt(given), encode: (held) => String(held) })
  .meta({ description: "an integer as decimal text" });

/** A user's value: JSON, or an envelope for what JSON cannot express. */
export const value = z
  .codec(z.unknown(), z.unknown(), { decode: (given) => fromWire(given), encode: (held) => toWire(held) })
  .meta({
    description:
      "a value: plain JSON, or an envelope with $codec for dates, bigints, bytes, errors, maps, sets; or its text",
  });

/** A query contains only text. */
export const wholeText = z.codec(
  z
    .string()
    .max(15)
    .regex(/^\d{1,15}$/),
  whole,
  {
    decode: (given) => Number(given),
    encode: (held) => String(held),
  },
);
export const flagText = z.codec(z.enum(["true", "false"]), z.boolean(), {
  decode: (given) => given === "true",
  encode: (held) => (held ? "true" : "false"),
});
/** `key:value`; a colon in the key is %3A, and a per cent sign %25. */
export const labelText = z.codec(
  z
    .string()
    .max(2_048) // escaping makes a key of per cent signs three times as long
    .regex(/^[^:]+:/, "is key:value"),
  z.strictObject({ key: name, value: text }),
  {
    decode: (given) => {
      const colon = given.indexOf(":");
      const key = given.slice(0, colon).replaceAll("%3A", ":").replaceAll("%25", "%");
      return { key, value: given.slice(colon + 1) };
    },
    encode: ({ key, value: held }) => `${key.replaceAll("%", "%25").replaceAll(":", "%3A")}:${held}`,
  },
);
/** Values by key; a custom check, because z.record drops a key such as __proto__. */
const labelValues = z.custom<Readonly<Record<string, readonly string[]>>>(
  (held) => typeof held === "object" && held !== null && Object.values(held).every(Array.isArray),
);
const escapes = { key: /[%:,]/g, value: /[%,]/g } as const;
const unescaped = (part: string): string => part.replace(/%(25|3A|2C)/g, (code) => decodeURIComponent(code));
const escaped = (part: string, of: keyof typeof escapes): string =>
  part.replace(escapes[of], (letter) => encodeURIComponent(letter));
/** `key:value,…`; a run has all keys, and of several values of one key one. Escaped: % as %25, a comma as %2C, and in a key a colon as %3A. */
export const labelsText = z.codec(
  z
    .string()
    .max(16_384)
    .regex(/^[^:,]+:[^,]*(,[^:,]+:[^,]*)*$/, "is key:value,…"),
  labelValues,
  {
    decode: (given) => {
      const values = new Map<string, string[]>();
      for (const pair of given.split(",")) {
        const colon = pair.indexOf(":");
        const key = unescaped(pair.slice(0, colon));
        values.set(key, [...(values.get(key) ?? []), unescaped(pair.slice(colon + 1))]);
      }
      return Object.fromEntries(values);
    },
    encode: (held) =>
      Object.entries(held)
        .flatMap(([key, values]) => values.map((one) => `${escaped(key, "key")}:${escaped(one, "value")}`))
        .join(","),
  },
);
/** A cursor of a list, which may hold a name. */
export const cursorText = z.string().max(600);
/** As long as Node allows a request line to be, with at most as many names as a page has rows. */
export const listText = z.codec(z.string().min(1).max(16_384), names, {
  decode: (given) => given.split(",", maxItems + 1),
  encode: (held) => held.join(","),
});

/** Names separated by commas; a comma in a name is %2C, and a per cent sign %25. */
export const namesText = z.codec(z.string().min(1).max(16_384), names, {
  decode: (given) => given.split(",", maxItems + 1).map((text) => text.replaceAll("%2C", ",").replaceAll("%25", "%")),
  encode: (held) => held.map((text) => text.replaceAll("%", "%25").replaceAll(",", "%2C")).join(","),
});

/** A fence on the wire, without its tenant: no caller may choose one, so the server adds the credential's. */
export type WireFence = Omit<Fence, "tenant" | symbol>;

export const fence = z.codec(
  z.strictObject({ journal, token: digits, nonce: digits }),
  z.custom<WireFence>((held) => typeof held === "object" && held !== null && "token" in held),
  {
    decode: (given): WireFence => ({ journal: given.journal, token: BigInt(given.token), nonce: BigInt(given.nonce) }),
    encode: (held) => ({ journal: held.journal, token: String(held.token), nonce: String(held.nonce) }),
  },
);

export const fenceOf = (tenant: string, { journal: number, token, nonce }: WireFence): Fence =>
  makeFence(tenant, number, token, nonce);

/** The error of one item of a batch. */
const refusal = z.codec(
  z.strictObject({ code: z.string(), detail: z.string(), details: z.unknown().exactOptional() }),
  z.custom<TapeError>((held) => held instanceof Error),
  {
    decode: (given) => errorOf(given),
    encode: (held) => {
      const { code, detail, details } = problemOf(held);
      return { code, detail, ...defined({ details }) };
    },
  },
);
export const refused = z.strictObject({ ok: z.literal(false), error: refusal });

/** The result of one item of a batch: its value or its error. */
export const itemResult = <S extends z.core.$ZodLooseShape>(shape: S) =>
  z.discriminatedUnion("ok", [z.strictObject({ ok: z.literal(true), ...shape }), refused]);

export const target = z.union([z.strictObject({ run: name }), z.strictObject({ name }), z.strictObject({ journal })]);

export const claimant = z.strictObject({
  owner: name,
  label: name,
  reactor: name,
  ttlMs: spanMs,
  maxStallMs: spanMs.exactOptional(),
});

export { buildName };

/** Two lists of this many names fit into the body of a find, beside its workflows. */
const maxPinned = 500;

/** The build of a process, and the workflows that it pins. */
export const buildClaim = z.strictObject({
  build: buildName,
  pinned: z.array(name).max(maxPinned),
  leaves: z.array(name).max(maxPinned).exactOptional(),
});

/** Labels of a run or units of a budget. More than this belongs into the input. */
const maxNamed = 256;

type Named<T> = Readonly<Record<string, T>>;

const isNamed = <T>(schema: z.ZodType<T>, maxKeys: number, held: unknown): held is Named<T> => {
  if (typeof held !== "object" || held === null || Array.isArray(held)) return false;
  const keys = Object.keys(held);
  return keys.length <= maxKeys && keys.every((key) => schema.safeParse((held as Named<unknown>)[key]).success);
};

/** An object with keys chosen by the user. Keys that no request may contain are sent as text, as in a value. */
const named = <T>(schema: z.ZodType<T>, what: string, maxKeys: number) =>
  z.codec(
    z.union([
      z.strictObject({ $codec: z.literal("text"), data: document }),
      // Not z.record: it would parse every key before the bound on their number applies.
      z
        .custom<Named<T>>((given) => isNamed(schema, maxKeys, given), `must be an object of at most ${maxKeys} ${what}`)
        .meta({ type: "object", maxProperties: maxKeys, additionalProperties: jsonSchemaOf(schema) }),
    ]),
    z.custom<Named<T>>((held) => isNamed(schema, maxKeys, held)),
    {
      decode: (given) => (isText(given) ? decode(given.data) : given) as Named<T>,
      // A bounded list encodes each item before checking it, so undefined arrives here, too.
      encode: (held) =>
        held !== undefined && (Object.hasOwn(held, "$codec") || mustBeText(JSON.stringify(held)))
          ? { $codec: "text" as const, data: encode(held) }
          : (held as never),
    },
  );

function jsonSchemaOf(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema) as Record<string, unknown>;
  return json;
}

export const labels = named(text, "short strings", maxNamed);
export const amounts = named(whole, "integers", maxNamed);
/** Labels in a response: a run of an embedded program may have more than {@link labels} allows. */
export const reportedLabels = named(z.string(), "strings", Number.MAX_SAFE_INTEGER);

/** A record to be written. The store checks its data, for every entry point alike. */
export const newRecord = z.strictObject({ kind: name, data: value });
export const entry = z.strictObject({
  after: journal,
  records: z.array(newRecord).max(defaultLimits.appendRecords).min(1),
  begins: journal.exactOptional(),
});

const journalRecord = { journal: z.int(), seq: z.int(), token: big, at: z.number(), kind: name, data: value };
export const record = z.strictObject(journalRecord);
export const feedRecord = z.strictObject({
  ...journalRecord,
  in: z.enum(["journal", "inbox"]),
  cursor: z.string(),
});

export const signal = z.strictObject({
  name,
  value,
  key: name.exactOptional(),
  binds: text.exactOptional(),
  by: name.exactOptional(),
  reason: text.exactOptional(),
  asks: z.literal(true).exactOptional(),
  mustMatch: z.literal(true).exactOptional(),
});

/** A signal that a start sends with its run. */
export const startSignal = signal.omit({ asks: true, mustMatch: true }).extend({ key: name });
export const startSignals = z.array(startSignal).max(defaultLimits.startSignals);

/** When a run starts, and in which queue. */
export const startFields = {
  queue: name.exactOptional(),
  key: text.exactOptional(),
  priority: z.int().min(minPriority).max(maxPriority).exactOptional(),
  /** Of the key, in thousandths. */
  weight: whole.exactOptional(),
  delayMs: waitMs.exactOptional(),
  /** Milliseconds since 1970. */
  startAt: z.int().nonnegative().max(8.64e15).exactOptional(),
  expiresMs: waitMs.exactOptional(),
  unique: z.strictObject({ key: name, onConflict: z.enum(onConflicts) }).exactOptional(),
  debounce: z.strictObject({ key: name, waitMs, maxWaitMs: waitMs.exactOptional() }).exactOptional(),
  signals: startSignals.exactOptional(),
  maxStallMs: spanMs.exactOptional(),
  deadlineMs: spanMs.exactOptional(),
};

export const wakeHint = z.union([
  z.strictObject({
    ...{ of: z.literal("reactor"), reactor: name },
    ...{ tenant: name.exactOptional(), workflow: name.exactOptional() },
  }),
  z.strictObject({ of: z.literal("value"), tenant: name, key: name }),
  z.strictObject({ of: z.enum(["journal", "published"]), tenant: name, journal }),
  z.strictObject({ of: z.literal("stream"), tenant: name, journals: z.array(journal).max(1_000) }),
  z.strictObject({ of: z.literal("any") }),
]);
