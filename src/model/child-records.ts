import { z } from "zod";
import { buildName } from "./build-records.ts";
import { queuedShape } from "./start-shape.ts";

const text = z.string();
const name = z.string().min(1);
const count = z.int().nonnegative();
const positiveMs = z.int().positive();
/** A user's value: anything that the codec can encode. */
const value = z.unknown();
const labels = z.record(z.string(), z.string());
const amounts = z.record(z.string(), z.int().nonnegative());

/** The records of child runs: see records.ts for all kinds. */
export const childSchemas = {
  "child.started": z.strictObject({
    pos: count,
    id: name,
    workflow: name,
    version: text.optional(),
    input: value,
    inputHash: name,
    labels: labels.optional(),
    maxStallMs: positiveMs.exactOptional(),
    queue: queuedShape.exactOptional(),
    /** It is pinned to the build of its parent. */
    build: buildName.exactOptional(),
    /** Detached: a run without a parent, with the id of this run as a link to it, and with a budget of its own. */
    startedBy: name.exactOptional(),
    budget: amounts.exactOptional(),
    /** A run with this id, workflow and input existed: nothing is created. */
    joined: z.literal(true).exactOptional(),
  }),
  "child.settled": z.strictObject({ pos: count, id: name, status: name, outcome: value.optional() }),
  "child.received": z.strictObject({ pos: count, childPos: count, status: name, outcome: value.optional() }),
} as const;
