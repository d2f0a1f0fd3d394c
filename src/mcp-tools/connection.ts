import { isTapeError, TapeError } from "../model/errors.ts";
import { AckLost, DefiniteFailure, NotSent } from "../sdk/outcomes.ts";

/**
 * A connected client of the Model Context Protocol, as far as Tape uses it. The clients of `@modelcontextprotocol/sdk`
 * 1.x and `@modelcontextprotocol/client` 2.x both fit.
 */
export interface McpClient {
  /** Calls a tool. */
  callTool(params: never, ...rest: never[]): Promise<unknown>;
  /** Lists the server's tools. */
  listTools?(params?: never, ...rest: never[]): Promise<{ readonly tools: readonly unknown[] }>;
}

type AnyArguments = (...args: unknown[]) => Promise<unknown>;

/** A client, or how to connect one: then a broken connection is replaced at the next attempt. */
export type McpConnection = McpClient | (() => McpClient | Promise<McpClient>);

/** The result of a tool: what it returned, and all its text. */
export interface McpResult {
  /** All its text. */
  readonly text: string;
  /** Its parts, as the protocol has them. */
  readonly content: readonly unknown[];
  /** The structured form, if the tool has one. */
  readonly structured?: unknown;
}

export interface McpToolCall {
  readonly name: string;
  readonly arguments: Record<string, unknown>;
  readonly _meta: Readonly<Record<string, string>>;
}

/** Codes with which a server rejects a request before any tool runs. */
const rejected: ReadonlySet<unknown> = new Set([-32_700, -32_600, -32_601, -32_602]);
/** No connection was made, so nothing was sent. */
const unreachable: ReadonlySet<unknown> = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ENOENT", "EACCES"]);
/** More words than a model needs to learn why. */
const maxWords = 4_096;

/** Connects once, and again after the connection broke. */
export class Connection {
  readonly #connect: () => McpClient | Promise<McpClient>;
  #client: Promise<McpClient> | undefined;

  constructor(given: McpConnection) {
    this.#connect = typeof given === "function" ? given : () => given;
  }

  /**
   * Calls a tool. The error says how certain the outcome is: NotSent, DefiniteFailure, or AckLost if the tool may have
   * run.
   */
  async call(call: McpToolCall, signal: AbortSignal, timeoutMs: number): Promise<McpResult> {
    const client = await this.#connected();
    let result: unknown;
    try {
      result = await withOptions(client, call, { signal, timeout: timeoutMs, resetTimeoutOnProgress: true });
    } catch (error) {
      const classified = classify(error);
      if (!(classified instanceof DefiniteFailure)) this.#client = undefined; // the next attempt connects again
      throw classified;
    }
    const { content, structuredContent, isError } = shapeOf(result);
    const text = textOf(content);
    if (isError) throw refused(text.slice(0, maxWords) || "the tool reported an error");
    return { text, content, ...(structuredContent !== undefined && { structured: structuredContent }) };
  }

  /** The server's tools, as it lists them. */
  async list(): Promise<readonly unknown[]> {
    const client = await this.#connected();
    if (client.listTools === undefined) throw new TapeError("TAPE_BAD_INPUT", "the client has no listTools");
    const listTools = client.listTools.bind(client) as AnyArguments;
    const found: unknown[] = [];
    let cursor: unknown;
    for (let pages = 0; pages < maxPages; pages++) {
      const page = (await listTools(cursor === undefined ? undefined : { cursor })) as ToolPage;
      found.push(...page.tools);
      cursor = page.nextCursor;
      if (cursor === undefined) return found;
    }
    throw new TapeError("TAPE_TOO_LARGE", `the server lists its tools in more than ${maxPages} pages`);
  }

  async #connected(): Promise<McpClient> {
    this.#client ??= Promise.resolve().then(this.#connect);
    try {
      return await this.#client;
    } catch (error) {
      this.#client = undefined;
      if (isTapeError(error)) throw error;
      throw new NotSent(`no connection to the server: ${messageOf(error)}`, { cause: error });
    }
  }
}

interface ToolPage {
  readonly tools: readonly unknown[];
  readonly nextCursor?: unknown;
}

/** A server without end would list without end. */
const maxPages = 100;

/** The first generation takes the schema of the result before the options. It has a default, so it is not counted. */
function withOptions(client: McpClient, call: McpToolCall, options: object): Promise<unknown> {
  const callTool = client.callTool.bind(client) as AnyArguments;
  return client.callTool.length >= 2 ? callTool(call, options) : callTool(call, undefined, options);
}

/** This attempt did nothing. An earlier one without a response may have: "already paid" is an error, too. */
const refused = (message: string, cause?: unknown): DefiniteFailure =>
  new DefiniteFailure(message, { scope: "attempt", ...(cause !== undefined && { cause }) });

function classify(error: unknown): Error {
  const { code, cause, message } = (error ?? {}) as { code?: unknown; cause?: { code?: unknown }; message?: unknown };
  const options = { cause: error };
  if (rejected.has(code)) return refused(messageOf(error), error);
  if (unreachable.has(code) || unreachable.has(cause?.code) || message === "Not connected") {
    return new NotSent(messageOf(error), options);
  }
  // A status of HTTP that rejects the request before any tool runs.
  if (code === 401 || code === 403 || code === 404 || code === 429) return new NotSent(messageOf(error), options);
  return new AckLost(messageOf(error), options);
}

interface CallResult {
  readonly content: readonly unknown[];
  readonly structuredContent: unknown;
  readonly isError: boolean;
}

function shapeOf(result: unknown): CallResult {
  const { content, structuredContent, isError } = (result ?? {}) as Partial<CallResult>;
  return { content: Array.isArray(content) ? content : [], structuredContent, isError: isError === true };
}

function textOf(content: readonly unknown[]): string {
  const texts = content.flatMap((part) => {
    const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown };
    return type === "text" && typeof text === "string" ? [text] : [];
  });
  return texts.join("\n");
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
