import { isTapeError } from "../src/model/errors.ts";
import type { TapeContext } from "../src/sdk/context.ts";
import { gate } from "../src/sdk/gate.ts";

/** Ends the generation of a run. */
export interface ContinueOp<Op = unknown> {
  readonly op: "continue";
  /** The operations of the next generation. "same": the same input again, if a client asks for another turn. */
  readonly next: readonly Op[] | "same";
}

interface Input<Op> {
  readonly ops: readonly Op[];
  readonly attempts: number;
}

/** The gate of a session, which runs the same code for every signal. */
export const turnGate = "turn";
/** The step whose result is a value that the code has drawn. */
export const drawStep = "draw";

/** What stands for an answer after the heal: a session ends with it. */
const isLast = (value: unknown): boolean =>
  String((value as { readonly key?: unknown } | null)?.key).startsWith("answer");

/** The next generation. If the run cannot continue, its operations follow in this one. */
export async function continueWith<Op>(
  tape: TapeContext,
  { next }: ContinueOp<Op>,
  input: Input<Op>,
  run: (tape: TapeContext, input: Input<Op>) => Promise<unknown>,
): Promise<unknown> {
  const drawn = tape.uuid();
  await tape.step(drawStep, () => drawn);
  const following = next === "same" ? input : { ...input, ops: next };
  if (next === "same") {
    const turn = await tape.gate(gate<unknown>(turnGate));
    if (turn.status !== "received" || isLast(turn.value)) return drawn;
  }
  try {
    return await (tape as TapeContext<Input<Op>>).continueAsNew(following);
  } catch (error) {
    if (!isTapeError(error, "TAPE_OPEN_CHILDREN") && !isTapeError(error, "TAPE_TOO_LARGE")) throw error;
    return next === "same" ? drawn : run(tape, following);
  }
}
