import { z } from "zod";
import { credential } from "./credential.ts";

const name = z.string().min(1);
const count = z.int().nonnegative();
const journal = z.int().positive();

/**
 * The records of another run's journal that a fork keeps: those of operations before `pos`, written up to `through`.
 * `seeds`: the runs whose random seed the code used, and up to which position.
 */
export const forkShape = z.strictObject({
  journal,
  pos: count,
  through: count,
  by: name,
  via: credential.exactOptional(),
  reason: name,
  seeds: z.array(z.strictObject({ before: count, run: name, lanes: z.array(count).optional() })),
  /** The first position of each lane that is not kept. */
  lanes: z.array(count).optional(),
  /** The first record of the other run that is kept, and its generation, if it has continued as new. */
  begins: z.int().positive().exactOptional(),
  generation: z.strictObject({ generation: z.int().min(2), pos: count }).exactOptional(),
});
export type ForkData = z.infer<typeof forkShape>;
