import { z } from "zod";

const name = z.string().min(1);

/** The records by which runs, or their payloads, leave the store: see records.ts for all kinds. */
export const retentionSchemas = {
  /** In the store's journal. `archive`: the file that has the run, and its hash. */
  "run.pruned": z.strictObject({
    tenant: name,
    id: name,
    token: z.string().regex(/^\d{1,19}$/),
    archive: name.exactOptional(),
    sha256: name.exactOptional(),
  }),
  /** In the store's journal: no record of the run holds a payload any more. */
  "run.erased": z.strictObject({ tenant: name, id: name }),
};
