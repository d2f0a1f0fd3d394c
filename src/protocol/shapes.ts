import { z } from "zod";
import { decode, encode } from "../base/codec.ts";
import { defined } from "../base/defined.ts";
import type { TapeError } from "../model/errors.ts";
import { type Fence, makeFence } from "../model/fence.ts";
import { defaultLimits } from "../model/limits.ts";
import { errorOf, problemOf } from "./problem.ts";
import { fromWire, isText, mustBeText, toWire } from "./values.ts";

/** The small things that everything else on the wire is made of. */

export const name = z.string().min(1).max(512);
export const text = z.string().max(512);
/**
 * Every text, list, record and number that a caller sends has a bound here; a test goes through the contract and finds
 * one that has none. An item of a list is looked at only when the list is not too long.
 */
const largest = Number.MAX_SAFE_INTEGER;
export const whole = z.int().nonnegative().max(largest);
export const journal = z.int().positive().max(largest);
export const ms = z.number().nonnegative();
/** A length of time that somebody chooses: ten years. */
export const spanMs = z.int().positive().max(315_360_000_000);
/** Milliseconds since 1970, as far as a date can be. */
export const time = z.number().min(-8.64e15).max(8.64e15);
/** How many rows a caller wants; a page holds fewer still. */
export const rows = z.int().positive().max(10_000);
export const rowsOrNone = z.int().nonnegative().max(10_000);
/** Text that is stored as it is, and may be as long as a payload. */
export const document = z.string().max(defaultLimits.payloadBytes);

/** Items of one call: whoever has more sends several. */
export const maxItems = 1_000;
/** Runs of one call, which can be small. */
export const maxSpecs = defaultLimits.batchItems;
export const names = z.array(name).max(maxItems);

/** The page was full, in rows or in bytes: it continues behind its last row. */
export const more = z.boolean().exactOptional();

const digits = z
  .string()
  .max(19)
  .regex(/^\d{1,19}$/);

/** A JSON number rounds above 2^53: tokens and nonces travel as decimal text. */
export const big = z
  .codec(digits, z.bigint(), { decode: (given) => BigInt(given), encode: (held) => String(held) })
  .meta({ description: "a whole number as decimal text" });

/** A value of the user's: JSON, or an envelope that says what JSON cannot. */
export const value = z
  .codec(z.unknown(), z.unknown(), { decode: (given) => fromWire(given), encode: (held) => toWire(held) })
  .meta({
    description:
      "a value: plain JSON, or an envelope with $codec for dates, bigints, bytes, errors, maps, sets; or its text",
  });

/** In a query everything is text. */
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
/** `key:value`; a colon of the key's own is %3A, and its per cent sign %25. */
export const labelText = z.codec(
  z
    .string()
    .max(2_048) // a key of per cent signs is three times as long as it was
    .regex(/^[^:]+:/, "is key:value"),
  z.strictObject({ key: name, value: text }),
  {
    decode: (given) => {
      const cut = given.indexOf(":");
      const key = given.slice(0, cut).replaceAll("%3A", ":").replaceAll("%25", "%");
      return { key, value: given.slice(cut + 1) };
    },
    encode: ({ key, value: held }) => `${key.replaceAll("%", "%25").replaceAll(":", "%3A")}:${held}`,
  },
);
/** As long as Node lets a request line be, and no more names than a page has rows. */
export const listText = z.codec(z.string().min(1).max(16_384), names, {
  decode: (given) => given.split(",", maxItems + 1),
  encode: (held) => held.join(","),
});

/** A fence as it travels: without its tenant, which no caller may choose. The server puts the credential's into it. */
export type WireFence = Omit<Fence, "tenant" | symbol>;

export const fence = z.codec(
  z.strictObject({ journal, token: digits, nonce: digits }),
  z.custom<WireFence>((held) => typeof held === "object" && held !== null && "token" in held),
  {
    decode: (given): WireFence => ({ journal: given.journal, token: BigInt(given.token), nonce: BigInt(given.nonce) }),
    encode: (held) => ({ journal: held.journal, token: String(held.token), nonce: String(held.nonce) }),
  },
);

export const fenceOf = (tenant: string, { journal: of, token, nonce }: WireFence): Fence =>
  makeFence(tenant, of, token, nonce);

/** One refusal among the answers of a batch. */
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

/** Its own answer or its own refusal. */
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

/** Labels of a run, units of a budget: more of them are data. */
const maxNamed = 256;

type Named<T> = Readonly<Record<string, T>>;

const isNamed = <T>(schema: z.ZodType<T>, most: number, held: unknown): held is Named<T> => {
  if (typeof held !== "object" || held === null || Array.isArray(held)) return false;
  const keys = Object.keys(held);
  return keys.length <= most && keys.every((key) => schema.safeParse((held as Named<unknown>)[key]).success);
};

/** Names of the user's choice: those that no request may have as a key travel as text, as in a value. */
const named = <T>(schema: z.ZodType<T>, what: string, most: number) =>
  z.codec(
    z.union([
      z.strictObject({ $codec: z.literal("text"), data: document }),
      // Not z.record: it goes through every key before anybody can say that there are too many.
      z
        .custom<Named<T>>((given) => isNamed(schema, most, given), `must be at most ${most} ${what}, by their names`)
        .meta({ type: "object", maxProperties: most, additionalProperties: jsonSchemaOf(schema) }),
    ]),
    z.custom<Named<T>>((held) => isNamed(schema, most, held)),
    {
      decode: (given) => (isText(given) ? decode(given.data) : given) as Named<T>,
      // Of a list with a bound each item is encoded before it is checked: what is absent comes here too.
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

export const labels = named(text, "short texts", maxNamed);
export const amounts = named(whole, "whole numbers", maxNamed);
/** As they are told: an embedded program's run may have more. */
export const reportedLabels = named(z.string(), "texts", Number.MAX_SAFE_INTEGER);

/** A record as a writer gives it. What its data must hold is checked by the store, for every door alike. */
export const newRecord = z.strictObject({ kind: name, data: value });
export const entry = z.strictObject({
  after: journal,
  records: z.array(newRecord).max(defaultLimits.appendRecords).min(1),
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
});

export const wakeHint = z.union([
  z.strictObject({
    ...{ of: z.literal("reactor"), reactor: name },
    ...{ tenant: name.exactOptional(), workflow: name.exactOptional() },
  }),
  z.strictObject({ of: z.literal("value"), tenant: name, key: name }),
  z.strictObject({ of: z.literal("journal"), tenant: name, journal }),
  z.strictObject({ of: z.literal("any") }),
]);
