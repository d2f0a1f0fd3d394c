import type { TapeContext } from "../sdk/context.ts";
import { type GateDefinition, gate } from "../sdk/gate.ts";
import { DefiniteFailure } from "../sdk/outcomes.ts";
import type { Schema } from "../sdk/schema.ts";

/** What a server asks its client's user for, while a tool runs. */
export interface ElicitRequest {
  /** What the server asks. */
  readonly message?: unknown;
  /** The schema of the answer. */
  readonly requestedSchema?: unknown;
  /** Further fields of the protocol. */
  readonly [field: string]: unknown;
}

/** The answer, as the protocol has it. */
export interface ElicitAnswer {
  /** Whether the request was accepted. */
  readonly action: "accept" | "decline" | "cancel";
  /** The values, if the answer is `accept`. */
  readonly content?: Readonly<Record<string, unknown>>;
}

const answerSchema: Schema<ElicitAnswer> = {
  "~standard": {
    version: 1,
    vendor: "durable-tape",
    validate: (value) => {
      const { action, content } = (value ?? {}) as Partial<ElicitAnswer>;
      if (action !== "accept" && action !== "decline" && action !== "cancel") {
        return { issues: [{ message: 'an answer is { action: "accept" | "decline" | "cancel", content }' }] };
      }
      if (content !== undefined && (typeof content !== "object" || content === null || Array.isArray(content))) {
        return { issues: [{ message: "content is an object" }] };
      }
      return { value: { action, ...(content !== undefined && { content }) } };
    },
  },
};

/**
 * The gate at which a run waits for what a server has asked for.
 *
 * @example
 * await app.signal(runId, toolInput, { action: "accept", content: { seat: "12A" } });
 */
export const toolInput: GateDefinition<ElicitAnswer> = gate("tool input", { schema: answerSchema });

/** More questions than that in one call are a loop. */
export const maxQuestions = 8;

/** A call that was given up because its server has asked for something. */
export class InputWanted extends DefiniteFailure {
  declare readonly elicited: ElicitRequest;

  constructor(elicited: ElicitRequest) {
    super("the tool asked for input", { scope: "attempt" });
    this.elicited = elicited;
  }
}

/** The request that ended a call; undefined: it failed for another reason. */
export function elicitedBy(error: unknown): ElicitRequest | undefined {
  const found = (error as { readonly elicited?: unknown } | undefined)?.elicited;
  return typeof found === "object" && found !== null ? (found as ElicitRequest) : undefined;
}

export async function awaitInput(tape: TapeContext, tool: string, elicited: ElicitRequest): Promise<ElicitAnswer> {
  const { message, requestedSchema } = elicited;
  const answer = await tape.gate(toolInput, { payload: { tool, message, requestedSchema } });
  return answer.status === "received" ? answer.value : { action: "cancel" };
}

/** The questions of the call that is in progress. Calls take turns, because a question does not name its call. */
export class ElicitationTurns {
  #turn: Promise<unknown> = Promise.resolve();
  #answers: ElicitAnswer[] = [];
  #isOpen = false;
  #requested: ElicitRequest | undefined;

  /** Answers what the run has an answer for. Anything else ends the call, and the run waits for the answer at a gate. */
  readonly answer = async (request: ElicitRequest): Promise<ElicitAnswer> => {
    const known = this.#isOpen ? this.#answers.shift() : undefined;
    if (known !== undefined) return known;
    if (this.#isOpen) this.#requested ??= request;
    return { action: "cancel" };
  };

  async during<T>(answers: readonly ElicitAnswer[], call: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(async () => {
      this.#answers = [...answers];
      this.#requested = undefined;
      this.#isOpen = true;
      try {
        const result = await call().catch((error: unknown) => {
          if (this.#requested === undefined) throw error;
        });
        if (this.#requested !== undefined) throw new InputWanted(this.#requested);
        return result as T;
      } finally {
        this.#isOpen = false;
      }
    });
    this.#turn = turn.catch(() => {});
    return turn;
  }
}
