import { perSite, siteOf } from "../agent/site.ts";
import { type DurableTool, durableTool, type ToolOutcome } from "../agent/tool-call.ts";
import type { AnyToolPolicy, ToolArgs, ToolBody, ToolPolicy } from "../agent/tool-policy.ts";
import { TapeError } from "../model/errors.ts";
import { current } from "../sdk/current.ts";
import type { Effect } from "../sdk/effect.ts";
import type { EffectContext } from "../sdk/effect-types.ts";
import { assertKnownKeys, assertName, booleanOr, durationOf } from "../sdk/validate.ts";
import { Connection, type McpConnection, type McpResult } from "./connection.ts";
import {
  awaitInput,
  type ElicitAnswer,
  ElicitationTurns,
  type ElicitRequest,
  elicitedBy,
  maxQuestions,
} from "./elicitation.ts";

/** Policies by the names of tools. Their functions receive the arguments of the call: annotate them with your types. */
export type McpPolicies = Readonly<Record<string, Omit<AnyToolPolicy, "local">>>;
type Rules = ToolPolicy<Record<string, unknown>>;

/** How strict the tools of a server are, and whether it may ask for input. */
export interface McpToolsOptions {
  /** true: a tool without a policy is refused. Default false. */
  readonly strict?: boolean;
  /**
   * true: what the server asks for while a tool runs (`elicit`) is asked at a gate. Calls then take turns. Default
   * false.
   */
  readonly elicitation?: boolean;
}

/** Tools of an MCP server, as effects of the run that calls them. */
export interface McpTools {
  /** For `createRunner`. */
  readonly effects: readonly Effect<ToolArgs, unknown>[];
  /** Calls a tool in a workflow. Throws {@link McpCallFailed} if it failed or was not approved. */
  call(tool: string, args?: Readonly<Record<string, unknown>>): Promise<McpResult>;
  /** The same for an agent: `call` is the model's id of this call, and a failure is a result in words. */
  attempt(tool: string, args: Readonly<Record<string, unknown>>, call: string): Promise<ToolOutcome>;
  /** What the server lists, unchanged: name, description, input schema, annotations. */
  list(): Promise<readonly unknown[]>;
  /** Answers the client's requests `elicitation/create`. */
  readonly elicit: (request: ElicitRequest) => Promise<ElicitAnswer>;
}

/**
 * A tool of an MCP server that failed, or was denied or not approved.
 *
 * @example
 * try {
 *   await tools.call("pay", { invoice: "7" });
 * } catch (error) {
 *   if (error instanceof McpCallFailed) tape.log(`${error.tool}: ${error.status}`);
 * }
 */
export class McpCallFailed extends Error {
  override readonly name = "McpCallFailed";
  /** The name of the tool. */
  readonly tool: string;
  readonly status: Extract<ToolOutcome, { ok: false }>["status"];

  constructor(tool: string, { status, words }: Extract<ToolOutcome, { ok: false }>) {
    super(`${tool}: ${words}`);
    this.tool = tool;
    this.status = status;
  }
}

/** The arguments of the effects. */
interface McpInput {
  readonly tool: string;
  readonly arguments: Record<string, unknown>;
  readonly answers?: readonly ElicitAnswer[];
  /** The id of the first of several calls that belong together. */
  readonly first?: string;
}

/** Policies that say nothing else share an effect of the server. */
const sharedKeys: ReadonlySet<string> = new Set(["semantics", "approve"]);

/**
 * Makes the tools of an MCP server durable. Three effects serve every tool whose policy is its semantics: `NAME.read`,
 * `NAME.idempotent` and, without a policy, `NAME.act`. A tool with rules of its own has an effect of its own,
 * `NAME.tool.TOOL`. The server receives the effect's key and token in `_meta`.
 *
 * @example
 * const bank = mcpTools("bank", connect, { look: { semantics: "read" }, pay: { businessKey: (a: Invoice) => a.invoice, observe } });
 * const runner = createRunner({ workflows: [settle], effects: bank.effects });
 * const { structured } = await bank.call("look", { invoice: "7" }); // in a workflow
 */
export function mcpTools(
  name: string,
  client: McpConnection,
  policies: McpPolicies = {},
  options: McpToolsOptions = {},
): McpTools {
  assertName("mcpTools: the server", name);
  assertKnownKeys("mcpTools", options, ["strict", "elicitation"]);
  for (const field of ["strict", "elicitation"] as const) booleanOr("mcpTools", field, options[field]);
  const connection = new Connection(client);
  const questions = new ElicitationTurns();
  const body = bodyOver(connection, options.elicitation === true ? questions : undefined, policies);
  const shared = sharedTools(name, body, policies);
  const own = new Map<string, DurableTool>();
  for (const [tool, policy] of Object.entries(policies)) {
    if ((policy as ToolPolicy).local !== undefined) throw notLocal(name, tool);
    if (!isShared(policy)) own.set(tool, durableTool(`${name}.tool`, tool, body, wrapped(policy)));
  }
  const durableOf = (tool: string): DurableTool => {
    const policy = policies[tool];
    if (policy === undefined && options.strict === true) throw withoutPolicy(name, tool);
    return own.get(tool) ?? shared[policy?.semantics ?? "non_idempotent"];
  };
  const attempt: McpTools["attempt"] = async (tool, args, call) => {
    const durable = durableOf(tool);
    const answers: ElicitAnswer[] = [];
    for (;;) {
      const input: McpInput = {
        ...{ tool, arguments: { ...args } },
        ...(answers.length > 0 && { answers: [...answers], first: call }),
      };
      const id = answers.length === 0 ? call : `${call} answer ${answers.length}`;
      const outcome = await durable.call({ call: id, input });
      const elicited = outcome.ok ? undefined : elicitedBy(outcome.error);
      if (elicited === undefined || answers.length >= maxQuestions) return outcome;
      answers.push(await awaitInput(current(), `${name} ${tool}`, elicited));
    }
  };
  return {
    effects: [...Object.values(shared), ...own.values()].flatMap(({ effect }) =>
      effect === undefined ? [] : [effect],
    ),
    attempt,
    async call(tool, args = {}) {
      const counts = callCounts(siteOf(current()));
      const n = (counts.get(`${name} ${tool}`) ?? 0) + 1;
      counts.set(`${name} ${tool}`, n);
      const outcome = await attempt(tool, args, `${tool} ${n}`);
      if (!outcome.ok) throw new McpCallFailed(tool, outcome);
      return outcome.value as McpResult;
    },
    list: () => connection.list(),
    elicit: questions.answer,
  };
}

/** Calls of each tool in a lane, so that each has an id of its own, the same on replay. */
const callCounts = perSite(() => new Map<string, number>());

const isShared = (policy: object): boolean => Object.keys(policy).every((key) => sharedKeys.has(key));

function sharedTools(name: string, body: ToolBody, policies: McpPolicies) {
  const approve = async ({ tool, arguments: args }: McpInput): Promise<boolean> => {
    const rule = (policies[tool] as Rules | undefined)?.approve;
    return typeof rule === "function" ? await rule(args) : rule === true;
  };
  const of = (effect: string, policy: AnyToolPolicy) => durableTool(name, effect, body, { ...policy, approve });
  return {
    read: of("read", { semantics: "read" }),
    idempotent: of("idempotent", { semantics: "idempotent" }),
    non_idempotent: of("act", {}),
  };
}

/** The policy over the effect's input, which has more than the tool's arguments. */
function wrapped(policy: McpPolicies[string]): AnyToolPolicy {
  const { businessKey, observe, compensate, approve, ...rest } = policy as Rules;
  const functions = {
    businessKey: businessKey && ((input: McpInput) => businessKey(input.arguments)),
    observe: observe && ((input: McpInput, fx: EffectContext) => observe(input.arguments, fx)),
    compensate:
      compensate && ((input: McpInput, result: unknown, fx: EffectContext) => compensate(input.arguments, result, fx)),
    approve: typeof approve === "function" ? (input: McpInput) => approve(input.arguments) : approve,
  };
  const given = Object.entries(functions).filter(([, value]) => value !== undefined);
  return { ...rest, ...Object.fromEntries(given) } as AnyToolPolicy;
}

/** As for an effect without a policy, see src/agent/tool-policy.ts. */
const defaultTimeoutMs = 600_000;

function bodyOver(connection: Connection, questions: ElicitationTurns | undefined, policies: McpPolicies): ToolBody {
  return async ({ tool, arguments: args, answers = [], first }: McpInput, { call, abortSignal, fx }) => {
    const timeoutMs = durationOf(`tool ${tool}`, "timeout", policies[tool]?.timeout, defaultTimeoutMs);
    const _meta = {
      "tape/call": `${fx!.runId} ${first ?? call}`,
      "tape/key": fx!.key,
      "tape/token": String(fx!.token),
    };
    const send = () => connection.call({ name: tool, arguments: args, _meta }, abortSignal, timeoutMs);
    return questions === undefined ? send() : questions.during(answers, send);
  };
}

function notLocal(name: string, tool: string): TapeError {
  const message = `mcpTools ${name}: ${tool} runs in another process, so it cannot be local`;
  return new TapeError("TAPE_BAD_INPUT", message, { field: tool });
}

function withoutPolicy(name: string, tool: string): TapeError {
  const message = `mcpTools ${name}: ${tool} has no policy: say whether it reads, is idempotent, or how it is observed`;
  return new TapeError("TAPE_UNSAFE_EFFECT", message, { effect: `${name}.act`, tool });
}
