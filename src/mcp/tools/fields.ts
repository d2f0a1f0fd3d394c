import { z } from "zod";

/** Arguments that several tools have. Every string, list and number has a bound. */

export const runId = z.string().min(1).max(512).describe("id of the run");
export const cursor = z.string().max(620).optional().describe("next of the page before");

/** Rows of a page. */
export const limitOf = (max: number) => z.int().min(1).max(max).default(Math.min(20, max));

export const label = z
  .strictObject({ key: z.string().min(1).max(512), value: z.string().max(512) })
  .describe("runs with this label");
export const labels = z
  .record(z.string().min(1).max(128), z.array(z.string().max(128)).min(1).max(16))
  .describe("runs with all of these labels; of several values of one key, one is enough");

/** A value of the user: any JSON. */
export const jsonValue = z.unknown();

/** The author of a change and the reason, for the audit log. */
export const audit = {
  by: z.string().min(1).max(200).describe("who decides: your own name, or that of the user on whose behalf you call"),
  reason: z.string().min(1).max(500).describe("why, for the audit log"),
};

export const position = z.int().nonnegative().max(Number.MAX_SAFE_INTEGER);
export const durationMs = z.int().positive().max(315_360_000_000);
