import { z } from "zod";
import { buildPattern } from "./build.ts";

export const buildName = z.string().max(128).regex(buildPattern);

/** The records of moves between builds: see records.ts for all kinds. */
export const buildSchemas = {
  /**
   * The run belongs to another build now. `trial`: until a replay there has confirmed it, with a record without it.
   * `refused`: the replay failed, for this reason, and the run belongs to its earlier build again.
   */
  "run.pinned": z.strictObject({
    build: buildName,
    from: buildName.exactOptional(),
    trial: z.literal(true).exactOptional(),
    refused: z.string().exactOptional(),
  }),
} as const;
