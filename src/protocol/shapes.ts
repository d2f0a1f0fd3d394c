import { z } from "zod";
import { decode, encode } from "../base/codec.ts";
import type { TapeError } from "../model/errors.ts";
import { type Fence, makeFence } from "../model/fence.ts";
import { errorOf, problemOf } from "./problem.ts";
import { fromWire, isText, mustBeText, toWire } from "./values.ts";

/** The small things that everything else on the wire is made of. */

export const name = z.string().min(1).max(512);
export const text = z.string().max(512);
export const whole = z.int().nonnegative();
export const journal = z.int().positive();
export const ms = z.number().nonnegative();

const digits = z.string().regex(/^\d{1,19}$/);

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
export const wholeText = z.codec(z.string().regex(/^\d{1,15}$/), z.int().nonnegative(), {
  decode: (given) => Number(given),
  encode: (held) => String(held),
});
export const flagText = z.codec(z.enum(["true", "false"]), z.boolean(), {
  decode: (given) => given === "true",
  encode: (held) => (held ? "true" : "false"),
});
/** `key:value`; a colon of the key's own is %3A, and its per cent sign %25. */
export const labelText = z.codec(
  z.string().regex(/^[^:]+:/, "is key:value"),
  z.strictObject({ key: name, value: z.string() }),
  {
    decode: (given) => {
      const cut = given.indexOf(":");
      const key = given.slice(0, cut).replaceAll("%3A", ":").replaceAll("%25", "%");
      return { key, value: given.slice(cut + 1) };
    },
    encode: ({ key, value: held }) => `${key.replaceAll("%", "%25").replaceAll(":", "%3A")}:${held}`,
  },
);
export const listText = z.codec(z.string().min(1), z.array(name), {
  decode: (given) => given.split(","),
  encode: (held) => held.join(","),
});

export const fence = z.codec(
  z.strictObject({ journal, token: digits, nonce: digits }),
  z.custom<Fence>((held) => typeof held === "object" && held !== null && "token" in held),
  {
    decode: (given) => makeFence(given.journal, BigInt(given.token), BigInt(given.nonce)),
    encode: (held) => ({ journal: held.journal, token: String(held.token), nonce: String(held.nonce) }),
  },
);

/** One refusal among the answers of a batch. */
const refusal = z.codec(
  z.strictObject({ code: z.string(), detail: z.string(), details: z.unknown().exactOptional() }),
  z.custom<TapeError>((held) => held instanceof Error),
  {
    decode: (given) => errorOf(given),
    encode: (held) => {
      const { code, detail, details } = problemOf(held);
      return { code, detail, ...(details === undefined ? {} : { details }) };
    },
  },
);
export const refused = z.strictObject({ ok: z.literal(false), error: refusal });

/** Its own answer or its own refusal. */
export const verdict = <S extends z.core.$ZodLooseShape>(shape: S) =>
  z.discriminatedUnion("ok", [z.strictObject({ ok: z.literal(true), ...shape }), refused]);

export const target = z.union([z.strictObject({ run: name }), z.strictObject({ name }), z.strictObject({ journal })]);

export const claimant = z.strictObject({
  owner: name,
  label: name,
  reactor: name,
  ttlMs: z.int().positive(),
  maxStallMs: z.int().positive().exactOptional(),
});

/** Names of the user's choice: those that no request may have as a key travel as text, as in a value. */
const named = <T>(schema: z.ZodType<T>) =>
  z.codec(
    z.union([z.strictObject({ $codec: z.literal("text"), data: z.string() }), z.record(z.string(), schema)]),
    z.custom<Readonly<Record<string, T>>>(
      (held) =>
        typeof held === "object" && held !== null && Object.values(held).every((one) => schema.safeParse(one).success),
    ),
    {
      decode: (given) => (isText(given) ? decode(given.data) : given) as Readonly<Record<string, T>>,
      encode: (held) =>
        Object.hasOwn(held, "$codec") || mustBeText(JSON.stringify(held))
          ? { $codec: "text" as const, data: encode(held) }
          : (held as never),
    },
  );

export const labels = named(z.string());
export const amounts = named(whole);

/** A record as a writer gives it. What its data must hold is checked by the store, for every door alike. */
export const newRecord = z.strictObject({ kind: name, data: value });
export const entry = z.strictObject({ after: z.int().positive(), records: z.array(newRecord).min(1) });

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

export const wake = z.union([
  z.strictObject({ of: z.literal("reactor"), reactor: name }),
  z.strictObject({ of: z.literal("value"), tenant: name, key: name }),
  z.strictObject({ of: z.literal("journal"), journal }),
  z.strictObject({ of: z.literal("any") }),
]);
