import { z } from "zod";

const name = z.string().min(1);
const count = z.int().nonnegative();

/**
 * A new generation of the run: its code starts again with this input, and no drive reads what stands between the first
 * record and this one. The run itself stays: its id, lease, inbox, labels, budget, slot, obligations and parent.
 */
const continuedShape = z.strictObject({
  /** The first generation is 1, and has no such record. */
  generation: z.int().min(2),
  /** The first position of the generation: that of a lane above all earlier ones, so that positions only grow. */
  pos: z.int().positive(),
  input: z.unknown(),
  inputHash: name,
  /** The input is the output of its schema: it was validated. */
  checked: z.literal(true).exactOptional(),
  /** How many notes the earlier generations have taken. */
  notesTaken: count,
  /** The signals among them that no gate has taken, by their numbers in the inbox. */
  notes: z.array(z.int().positive()),
  /** The limit on stalls in force. */
  maxStallMs: z.int().positive().exactOptional(),
  /** The deadline of the run has been set. */
  deadline: z.literal(true).exactOptional(),
  /** The labels that the code knows of. */
  labels: z.record(z.string(), z.string()).exactOptional(),
  /** The names that the run has published. */
  published: z.array(name).exactOptional(),
});

/** The records that hold for the rest of a generation. */
export const generationSchemas = {
  "run.continued": continuedShape,
  /** The limits in the workflow's code, if they differ from those of the run so far. */
  "run.limited": z.strictObject({ maxStallMs: z.int().positive() }),
} as const;
