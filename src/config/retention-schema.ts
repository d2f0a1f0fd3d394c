import { z } from "zod";

const duration = z
  .string()
  .min(1)
  .max(64)
  .regex(/^(?:forever|\d{1,9}(?:ms|s|m|h|d|y))$/, "must be forever, or such as 90d or 7y");

export const retentionSchema = z
  .strictObject({
    archive: z
      .string()
      .min(1)
      .max(2_048)
      .optional()
      .describe(
        "Where ended runs go before they are deleted: file:FOLDER, or FILE#EXPORT of a function that returns an Archive. Without it nothing is deleted",
      ),
    default: duration.optional().describe("How long ended runs are kept, such as 90d. Default: forever"),
    workflows: z
      .object({})
      .catchall(duration.describe("How long runs of this workflow are kept; wins over its code"))
      .prefault({})
      .describe("By workflow; wins over the retain option in its code, which wins over default"),
    batch: z.int().min(1).max(5_000).default(1_000).describe("Trees of one file, deleted in one transaction"),
    interval_s: z.number().positive().max(86_400).default(60).describe("Interval between two passes"),
  })
  .prefault({})
  .describe("How long ended runs are kept, and where they go");

export type RetentionConfig = z.output<typeof retentionSchema>;
