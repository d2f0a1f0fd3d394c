import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { ElicitAnswer, ElicitRequest } from "../../src/exports/mcp.ts";

const program = fileURLToPath(new URL("./bank-server.ts", import.meta.url));

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: ElicitRequest;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** A client with the interface of the first generation, over the real pipes of a real process. */
export class BankClient {
  readonly child: ChildProcess;
  readonly #waiting = new Map<number, (message: Message) => void>();
  readonly #elicit: (request: ElicitRequest) => Promise<ElicitAnswer>;
  #closed = false;
  #ids = 0;

  constructor(folder: string, dies: string, elicit: (request: ElicitRequest) => Promise<ElicitAnswer>) {
    this.#elicit = elicit;
    this.child = spawn(process.execPath, [program, folder], {
      ...{ stdio: ["pipe", "pipe", "inherit"], env: { PATH: process.env.PATH ?? "", BANK_DIES: dies } },
    });
    this.child.stdin!.on("error", () => {}); // it has died
    let rest = "";
    this.child.stdout!.on("data", (bytes) => {
      const lines = (rest + String(bytes)).split("\n");
      rest = lines.pop()!;
      for (const line of lines) this.#take(JSON.parse(line) as Message);
    });
    this.child.on("exit", () => {
      this.#closed = true;
      const lost = { error: { code: -32_000, message: "Connection closed" } };
      for (const resolve of this.#waiting.values()) resolve(lost);
    });
  }

  callTool = async (params: object, _schema?: undefined, options: { signal?: AbortSignal } = {}): Promise<unknown> => {
    options.signal?.throwIfAborted();
    return this.#request("tools/call", params);
  };

  listTools = (): Promise<{ tools: unknown[] }> => this.#request("tools/list", {}) as Promise<{ tools: unknown[] }>;

  async #request(method: string, params: object): Promise<unknown> {
    if (this.#closed) throw new Error("Not connected");
    const id = ++this.#ids;
    const answer = await new Promise<Message>((resolve) => {
      this.#waiting.set(id, resolve);
      this.child.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    });
    this.#waiting.delete(id);
    if (answer.error === undefined) return answer.result;
    throw Object.assign(new Error(answer.error.message), { code: answer.error.code });
  }

  #take(message: Message): void {
    if (message.method === undefined) return void this.#waiting.get(Number(message.id))?.(message);
    void this.#elicit(message.params ?? {}).then((result) => {
      this.child.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", id: message.id, result })}\n`);
    });
  }
}
