import { BaseLlm, type BaseLlmConnection, type LlmRequest, type LlmResponse } from "@google/adk";
import { ErrorClasses } from "../agent/error-classes.ts";
import { LiveParts, pieces } from "../agent/live-parts.ts";
import { type Invocation, type ModelCall, type ModelOptions, modelCall, modelOptionKeys } from "../agent/model-call.ts";
import { TapeError } from "../model/errors.ts";
import { current, currentSite } from "../sdk/current.ts";
import { assertKnownKeys } from "../sdk/validate.ts";
import { answerOf, type Content, messageOf, restored, withIds } from "./contents.ts";

/** What the plugin knows of a request before the model receives it. */
export interface RequestPlace {
  readonly agent: string;
  /** Of a parallel agent. */
  readonly branch: string | undefined;
}
export const places = new WeakMap<LlmRequest, RequestPlace>();

/** Agents of parallel branches do not wait for each other, so each branch has a lane of its own. */
export function inBranch<T>(branch: string | undefined, work: () => Promise<T>): Promise<T> {
  return branch === undefined || branch === "" ? work() : current().lane(`branch ${branch}`, work);
}

const errorClasses = new ErrorClasses([() => import("@google/genai")]);

/**
 * A model of ADK whose calls are decisions of the current run. `TapePlugin` puts it around the models of all agents;
 * outside a run it only passes requests on.
 *
 * @example
 * const agent = new LlmAgent({ name: "treasurer", model: new DurableLlm(new Gemini({ model: "gemini-3-pro" })) });
 */
export class DurableLlm extends BaseLlm {
  readonly #inner: BaseLlm;
  readonly #options: ModelOptions;

  /** The model to wrap, and its options. */
  constructor(inner: BaseLlm, options: ModelOptions = {}) {
    assertKnownKeys("DurableLlm", options, modelOptionKeys);
    super({ model: inner.model });
    this.#inner = inner;
    this.#options = options;
  }

  /** Answers a request: from the journal on replay. */
  override async *generateContentAsync(
    request: LlmRequest,
    stream = false,
    abortSignal?: AbortSignal,
  ): AsyncGenerator<LlmResponse, void> {
    if (currentSite() === undefined) return yield* this.#inner.generateContentAsync(request, stream, abortSignal);
    const live = new LiveParts<LlmResponse>();
    const invoke = async (context: Invocation): Promise<LlmResponse[]> => {
      const signals = [context.abortSignal, ...(abortSignal === undefined ? [] : [abortSignal])];
      const whole: LlmResponse[] = [];
      for await (const response of this.#inner.generateContentAsync(request, stream, AbortSignal.any(signals))) {
        if (response.partial !== true) whole.push(response);
        else await passOn(response, context, live);
      }
      return whole;
    };
    const finish = (responses: readonly LlmResponse[]): void => {
      for (const response of responses) live.push(response);
      live.end();
    };
    this.#call(request, invoke).then(finish, (error: unknown) => live.end({ error }));
    yield* live;
  }

  /** Live connections are refused, because nothing of them could be replayed. */
  override connect(_request: LlmRequest): Promise<BaseLlmConnection> {
    return Promise.reject(
      new TapeError("TAPE_BAD_INPUT", "runLive is not durable: a live connection cannot be replayed", {
        field: "model",
      }),
    );
  }

  async #call(request: LlmRequest, invoke: (context: Invocation) => Promise<LlmResponse[]>): Promise<LlmResponse[]> {
    const { branch, agent } = places.get(request) ?? { branch: undefined, agent: this.model };
    await errorClasses.load();
    return await inBranch(branch, () => this.#inLane(agent, request, invoke));
  }

  async #inLane(
    agent: string,
    request: LlmRequest,
    invoke: (context: Invocation) => Promise<LlmResponse[]>,
  ): Promise<LlmResponse[]> {
    const id = `adk-${current().uuid()}`;
    const { systemInstruction, tools = [], abortSignal: _, httpOptions: __, ...settings } = request.config ?? {};
    const system = systemInstruction === undefined ? [] : [{ role: "system", parts: systemParts(systemInstruction) }];
    const call: ModelCall<LlmResponse[]> = {
      agent: this.#options.agent ?? agent,
      model: `adk/${this.model}`,
      messages: [...system, ...request.contents],
      toMessage: messageOf as (message: Content) => ReturnType<typeof messageOf>,
      settings: { ...settings, tools },
      tools: Object.keys(request.toolsDict),
      maxOutputTokens: settings.maxOutputTokens,
      invoke: async (context) => withIds(await invoke(context), id),
      answerOf,
      restore: restored,
      faultOf: (error) => errorClasses.faultOf(error),
      revive: (failure) => errorClasses.revive(failure),
    };
    return (await modelCall(call, this.#options)).result;
  }
}

/** Words pass while the model produces them; whatever leads to a tool call passes after the record. */
async function passOn(response: LlmResponse, { emit, shown }: Invocation, live: LiveParts<LlmResponse>): Promise<void> {
  const parts = (response.content?.parts ?? []) as readonly { text?: string; thought?: boolean }[];
  if (parts.length === 0 || parts.some(({ text }) => text === undefined)) return;
  shown();
  live.push(response);
  for (const { text = "", thought } of parts) {
    for (const piece of pieces(text)) await emit({ type: thought === true ? "reasoning" : "text", text: piece });
  }
}

/** The framework writes text; a caller's own instruction may be a message, a part or a list. */
function systemParts(instruction: unknown): readonly object[] {
  if (typeof instruction === "string") return [{ text: instruction }];
  if (Array.isArray(instruction)) return instruction.flatMap((one: unknown) => systemParts(one));
  return (instruction as Content).parts ?? [instruction as object];
}
