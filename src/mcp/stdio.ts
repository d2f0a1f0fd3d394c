import { StringDecoder } from "node:string_decoder";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import { errorMessage, invalidRequest, isObject, notification, RpcError, type RpcId, rpcCodes } from "./json-rpc.ts";
import { isShown, type McpServer, newSession, type Peer } from "./mcp-server.ts";
import type { MessageLevel } from "./tool.ts";
import { hasBatches } from "./versions.ts";

/** As long as a body of the HTTP server; a longer line is no message of a working client. */
const maxLineChars = 16 * 1024 * 1024;
/** Requests in progress. A model makes a few at once; each may wait a minute for a run. */
const maxInProgress = 64;
/** How long requests may take once the client has closed its end. */
const graceMs = 2_000;
/** Messages of one batch, which only the oldest version has. */
export const maxBatch = 32;

export interface StdioOptions {
  readonly server: McpServer;
  readonly input: AsyncIterable<Uint8Array>;
  readonly write: (line: string) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** A conversation over standard input and output. */
export interface StdioConversation {
  /** Sends a log message to the client, if it wants messages of this level. */
  message(level: MessageLevel, data: unknown): void;
  /** Resolves when the client has closed its end and all requests are answered or cancelled. */
  readonly done: Promise<void>;
}

/** Serves one client: a message per line in both directions. Nothing else may be written to the output. */
export function serveStdio(options: StdioOptions): StdioConversation {
  const conversation = new Conversation(options);
  return { message: (level, data) => conversation.message(level, data), done: conversation.run() };
}

class Conversation {
  readonly #options: StdioOptions;
  readonly #session = newSession();
  readonly #inProgress = new Map<RpcId, AbortController>();
  readonly #work = new Set<Promise<void>>();

  constructor(options: StdioOptions) {
    this.#options = options;
  }

  message(level: MessageLevel, data: unknown): void {
    if (this.#session.version === undefined || !isShown(level, this.#session)) return;
    this.#send(notification("notifications/message", { level, logger: "durable-tape", data }));
  }

  async run(): Promise<void> {
    for await (const line of linesOf(this.#options.input)) {
      if (line === tooLong) this.#send(errorMessage(null, new RpcError(rpcCodes.parseError, "the line is too long")));
      else if (line.trim() !== "") this.#take(line);
    }
    // What it has asked for is done and answered, except for waits: a client that waits for us kills us soon.
    const { clock } = this.#options;
    const cancel = clock.after(graceMs, () => {
      for (const controller of this.#inProgress.values()) controller.abort();
    });
    while (this.#work.size > 0) await Promise.allSettled(this.#work);
    cancel();
  }

  #take(line: string): void {
    let json: unknown;
    try {
      json = JSON.parse(line);
    } catch {
      this.#send(errorMessage(null, new RpcError(rpcCodes.parseError, "the line is not JSON")));
      return;
    }
    if (isObject(json) && json.method === "notifications/cancelled") {
      const id = isObject(json.params) ? json.params.requestId : undefined;
      if (typeof id === "string" || typeof id === "number") this.#inProgress.get(id)?.abort();
      return;
    }
    const work = (Array.isArray(json) ? this.#batch(json) : this.#single(json)).catch((error: unknown) =>
      this.#options.log("error", "mcp.failed", { ...errorFields(error) }),
    );
    this.#work.add(work);
    void work.finally(() => this.#work.delete(work));
  }

  async #single(json: unknown): Promise<void> {
    const response = await this.#answer(json);
    if (response !== undefined) this.#send(response);
  }

  async #batch(json: readonly unknown[]): Promise<void> {
    const { version } = this.#session;
    if (version === undefined || !hasBatches(version) || json.length === 0 || json.length > maxBatch) {
      const message = `a batch has 1 to ${maxBatch} messages, and only version 2025-03-26 has batches`;
      this.#send(errorMessage(null, invalidRequest(message)));
      return;
    }
    const answers = (await Promise.all(json.map((one) => this.#answer(one)))).filter((one) => one !== undefined);
    if (answers.length > 0) this.#send(answers);
  }

  async #answer(json: unknown): Promise<object | undefined> {
    const id = isObject(json) ? (json.id as RpcId | undefined) : undefined;
    if (id !== undefined && this.#inProgress.size >= maxInProgress) {
      const message = `at most ${maxInProgress} requests at once`;
      return errorMessage(id, invalidRequest(message));
    }
    const controller = new AbortController();
    const peer: Peer = { signal: controller.signal, notify: (message) => this.#send(message) };
    const isFirst = id !== undefined && !this.#inProgress.has(id);
    if (isFirst) this.#inProgress.set(id, controller);
    try {
      const response = await this.#options.server.handle(json, this.#session, peer);
      // A client expects no response to what it has cancelled.
      return controller.signal.aborted ? undefined : response;
    } finally {
      if (isFirst) this.#inProgress.delete(id);
    }
  }

  #send(message: object): void {
    this.#options.write(`${JSON.stringify(message)}\n`);
  }
}

const tooLong = Symbol("too long");

/** Lines of UTF-8. A line beyond the bound is dropped up to its end, and reported once. */
async function* linesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<string | typeof tooLong> {
  const decoder = new StringDecoder("utf8");
  let parts: string[] = [];
  let chars = 0;
  let skipping = false;
  for await (const bytes of input) {
    const pieces = decoder.write(Buffer.from(bytes)).split("\n");
    for (const [k, piece] of pieces.entries()) {
      if (!skipping) {
        parts.push(piece);
        chars += piece.length;
        if (chars > maxLineChars) {
          skipping = true;
          parts = [];
          yield tooLong;
        }
      }
      if (k === pieces.length - 1) continue;
      if (!skipping) yield parts.join("");
      [parts, chars, skipping] = [[], 0, false];
    }
  }
  if (parts.length > 0 && !skipping) yield parts.join("");
}
