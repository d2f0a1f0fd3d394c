import { encode, registerErrorClass, sizeOf } from "../base/codec.ts";
import { defined } from "../base/defined.ts";
import type { Duration } from "../base/duration.ts";
import { errorFields } from "../base/reason.ts";
import { describeThrown } from "../base/thrown.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { defaultLimits } from "../model/limits.ts";
import type { DecisionContext, StepOptions, TapeContext } from "../sdk/context.ts";
import { current } from "../sdk/current.ts";
import type { RetryPolicy } from "../sdk/effect-types.ts";
import { NotSent } from "../sdk/outcomes.ts";
import { throwIfHalted } from "./control.ts";
import {
  type ComparedRequest,
  Conversation,
  type Message,
  type ModelRecord,
  type ModelRequest,
} from "./conversation.ts";
import { costOf, type Prices, tokensOf, type Usage } from "./price.ts";
import { perSite, siteOf } from "./site.ts";

/** What a user may choose for all calls of a model. */
export interface ModelOptions {
  /** Names the decisions: `<agent> <n>`. Default: the name of the model. */
  readonly agent?: string;
  /** Prices, to count and limit `usd`. */
  readonly price?: Prices;
  /** Default: 5 attempts, 1 s, doubled each time. A `retry-after` of the provider prolongs a pause. */
  readonly retry?: RetryPolicy;
  /** Of one attempt. Default 10 minutes. */
  readonly timeout?: Duration;
  /**
   * How long an outage of the model is outlasted: the run parks and tries again at growing intervals. After this time it
   * is STUCK and not failed, so nothing is compensated. Default 24 hours. false: the error of the last attempt is
   * thrown, for code that then calls another model.
   */
  readonly giveUpAfter?: Duration | false;
  /** Tokens that an answer is expected to need at most, where the request does not say so. Default 4096. */
  readonly maxOutputTokens?: number;
  /**
   * true: a request that differs from the recorded one on replay makes the run STUCK with TAPE_DIVERGED. Otherwise the
   * recorded answer is used, and the next call notes the change. Runs in progress keep the setting that they started
   * with. Default false.
   */
  readonly strict?: boolean;
}

export const modelOptionKeys = ["agent", "price", "retry", "timeout", "giveUpAfter", "maxOutputTokens", "strict"];

/** What the code that calls the model receives. */
export interface Invocation {
  readonly abortSignal: AbortSignal;
  /** From 1 on, also counted over processes. */
  readonly attempt: number;
  /** Writes a part to the run's stream. Text: `{ type: "text" | "reasoning", text }`. */
  emit(part: unknown): Promise<void>;
  /**
   * Call it before the framework receives a part that is not recorded. If the attempt fails then, it cannot be repeated
   * under the framework's eyes: the run parks, and the next attempt starts with a new replay.
   */
  shown(): void;
}

/** An answer, as the framework's result is recorded. */
export interface Answer {
  readonly message: Message;
  readonly usage?: Usage | undefined;
  readonly finish?: string | undefined;
  readonly rest?: unknown;
}

/** How a failed call continues. */
export interface ModelFault {
  /** The same request may succeed later: 408, 409, 429, 5xx, a broken connection. */
  readonly retry: boolean;
  readonly retryAfterMs?: number | undefined;
  /** What `revive` needs to build the framework's error; plain data. */
  readonly facts?: Readonly<Record<string, unknown>>;
}

/** One call of a model, as an adapter describes it. R is the framework's result. */
export interface ModelCall<R> extends ModelRequest {
  readonly agent: string;
  /** `provider/model` */
  readonly model: string;
  readonly maxOutputTokens?: number | undefined;
  invoke(context: Invocation): Promise<R>;
  answerOf(result: R): Answer;
  /** The framework's result from its record; live as well as on replay, so that both are equal. */
  restore(record: ModelRecord): R;
  faultOf(error: unknown): ModelFault;
  /** The framework's error, marked as not retryable. */
  revive(failure: ModelCallFailed): unknown;
}

/** A model call that failed. The journal has it instead of the framework's error, whose class does not survive there. */
export class ModelCallFailed extends NotSent {
  readonly retry: boolean;
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(message: string, { retry, retryAfterMs, facts = {} }: ModelFault) {
    super(message, { retryAfterMs });
    this.name = "ModelCallFailed";
    this.retry = retry;
    this.facts = facts;
  }
}

registerErrorClass("ModelCallFailed", (error) => {
  const { retry, facts } = error as { retry?: unknown; facts?: unknown };
  return typeof retry === "boolean" && typeof facts === "object" && facts !== null
    ? ModelCallFailed.prototype
    : undefined;
});

const defaultRetry: RetryPolicy = { attempts: 5, base: "1s", factor: 2, cap: "1m" };
/** A reasoning model may think for minutes; a connection that is dead for longer has to end at some time. */
const defaultTimeout: Duration = "10m";
const defaultOutage: Duration = "24h";
const defaultOutputTokens = 4_096;
/** Longer than the pause that a driver waits in memory, so that the run parks. */
const parkedMs = 2_500;
/** Large parts of an answer become blobs. A sealed blob takes a third more than its answer. */
const maxRecordBytes = defaultLimits.blobBytes / 2;
const maxFactChars = 2_048;

/**
 * Calls a model as a decision of the current run: the budget is reserved, the call is retried by Tape alone, its answer
 * is recorded, and its tokens are charged. On replay the recorded answer is returned, and nothing is called.
 *
 * @example
 * const { result } = await modelCall({ agent: "treasurer", model: "openai/gpt-6", messages, toMessage, invoke, … });
 */
export async function modelCall<R>(
  call: ModelCall<R>,
  options: ModelOptions = {},
): Promise<{ result: R; replayed: boolean }> {
  const tape = current();
  const site = siteOf(tape);
  throwIfHalted(site);
  const conversation = conversationOf(site, call.agent);
  const number = ++conversation.calls;
  const request = conversation.compare(call);
  // In strict mode the hash is part of the name, which replay compares.
  const name = `${call.agent} ${number}${options.strict === true ? ` #${request.hash.slice(0, 8)}` : ""}`;
  const open = new OpenCall(call, options, request, conversation);
  const estimate = open.estimate();
  try {
    const record = await tape.budget.spend(estimate, async () => {
      const value = await tape.decide(name, (decision) => open.attempt(tape, decision), policyOf(options));
      return { value, cost: open.cost(value) };
    });
    if (!open.live && record.hash !== request.hash) conversation.changed.push(name);
    request.remember(record.message);
    if (record.refused !== undefined) throw new TapeError("TAPE_TOO_LARGE", record.refused, { model: call.model });
    return { result: call.restore(record), replayed: !open.live };
  } catch (error) {
    throw error instanceof ModelCallFailed ? call.revive(error) : error;
  }
}

const policyOf = ({ retry, timeout = defaultTimeout, giveUpAfter = defaultOutage }: ModelOptions): StepOptions => ({
  retry: { ...defaultRetry, ...retry, when: isRetried, ...(giveUpAfter !== false && { giveUpAfter }) },
  timeout,
});

const isRetried = (error: unknown): boolean =>
  error instanceof ModelCallFailed ? error.retry : isTapeError(error, "TAPE_TIMEOUT");

/** The value of the decision also has the usage: a successor that finds it uncharged must charge it. */
type CountedRecord = ModelRecord & { readonly usage?: Usage };

/** One model call in one drive, over its attempts. */
class OpenCall<R> {
  /** An attempt was made in this drive. */
  live = false;
  #shown = false;
  #streamFull = false;
  readonly #call: ModelCall<R>;
  readonly #options: ModelOptions;
  readonly #request: ComparedRequest;
  readonly #conversation: Conversation;

  constructor(call: ModelCall<R>, options: ModelOptions, request: ComparedRequest, conversation: Conversation) {
    this.#call = call;
    this.#options = options;
    this.#request = request;
    this.#conversation = conversation;
  }

  estimate(): Record<string, number> {
    const { maxOutputTokens = this.#options.maxOutputTokens ?? defaultOutputTokens } = this.#call;
    return this.#amounts({ input: tokensOf(this.#request.chars), output: maxOutputTokens });
  }

  cost({ usage, message }: CountedRecord): Record<string, number> {
    return this.#amounts(usage ?? this.#presumed(message));
  }

  async attempt(tape: TapeContext, decision: DecisionContext): Promise<CountedRecord> {
    const { model } = this.#call;
    this.live = true;
    if (this.#shown) throw interrupted(model);
    const note = this.#request.note();
    if (note.changed !== undefined) {
      this.#conversation.changed = [];
      tape.log("request.changed", { model, calls: note.changed });
    }
    decision.record({ model, request: note });
    const result = await this.#invoke(tape, decision);
    const record = this.#recordOf(result);
    const usage = record.usage ?? this.#presumed(record.message);
    const usd = costOf(this.#options.price, model, usage);
    decision.record({ usage: { ...usage, ...defined({ usd }) } });
    return record;
  }

  async #invoke(tape: TapeContext, decision: DecisionContext): Promise<R> {
    const { abortSignal } = decision;
    try {
      return await this.#call.invoke({
        abortSignal,
        attempt: decision.attempt,
        emit: (part) => this.#emit(tape, decision, part),
        shown: () => {
          this.#shown = true;
        },
      });
    } catch (error) {
      if (isTapeError(error) || abortSignal.aborted) throw error;
      const fault = this.#call.faultOf(error);
      const pauseMs = this.#shown ? Math.max(parkedMs, fault.retryAfterMs ?? 0) : fault.retryAfterMs;
      const facts = Object.fromEntries(Object.entries(fault.facts ?? {}).filter(([, fact]) => isShort(fact)));
      throw new ModelCallFailed(describeThrown(error), { retry: fault.retry, retryAfterMs: pauseMs, facts });
    }
  }

  /** A stream that is full ends what readers see. It is no reason to lose an answer, which the record holds anyway. */
  async #emit(tape: TapeContext, decision: DecisionContext, part: unknown): Promise<void> {
    if (this.#streamFull) return;
    try {
      await decision.emit(part);
    } catch (error) {
      if (!isTapeError(error, "TAPE_TOO_LARGE")) throw error;
      this.#streamFull = true;
      tape.log("stream.full", { model: this.#call.model, ...errorFields(error) });
    }
  }

  #recordOf(result: R): CountedRecord {
    const { message, usage, finish, rest } = this.#call.answerOf(result);
    const { hash } = this.#request;
    const record: CountedRecord = { message, hash, ...defined({ usage, finish, rest }) };
    const refused = refusalOf(this.#call.model, record);
    if (refused === undefined) return record;
    return { message: { role: message.role, parts: [], cut: true }, hash, refused, ...defined({ usage, finish }) };
  }

  /** For a provider that reports no usage. */
  #presumed({ parts }: Message): Usage {
    return { input: tokensOf(this.#request.chars), output: tokensOf(JSON.stringify(parts)?.length ?? 0) };
  }

  #amounts(usage: Usage): Record<string, number> {
    const usd = costOf(this.#options.price, this.#call.model, usage);
    return { tokens: usage.input + usage.output, calls: 1, ...defined({ usd }) };
  }
}

/** Why an answer cannot be recorded; undefined: it can. It is checked before the record, which would be refused whole. */
function refusalOf(model: string, record: ModelRecord): string | undefined {
  try {
    const bytes = sizeOf(encode(record));
    if (bytes <= maxRecordBytes) return undefined;
    const files = record.message.parts.filter(({ type }) => type === "file").length;
    const what = files > 0 ? `${files} files and ` : "";
    return `the answer of ${model} has ${what}${bytes} bytes, at most ${maxRecordBytes} are recorded: request smaller files`;
  } catch (error) {
    return `the answer of ${model} cannot be recorded: ${describeThrown(error)}`;
  }
}

const interrupted = (model: string): ModelCallFailed =>
  new ModelCallFailed(`the answer of ${model} broke off after a part of it was shown`, {
    retry: true,
    retryAfterMs: parkedMs,
  });

function isShort(fact: unknown): boolean {
  try {
    return encode(fact).length <= maxFactChars;
  } catch {
    return false;
  }
}

const conversationsAt = perSite(() => new Map<string, Conversation>());

function conversationOf(site: object, agent: string): Conversation {
  const known = conversationsAt(site);
  const found = known.get(agent) ?? new Conversation();
  known.set(agent, found);
  return found;
}
