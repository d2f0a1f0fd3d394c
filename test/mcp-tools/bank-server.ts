// An MCP server in a process of its own: a bank with a ledger in a file. `BANK_DIES` says where it dies, once.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [, , folder = ""] = process.argv;
const ledger = `${folder}/ledger`;
const died = `${folder}/died`;

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: { name?: string; arguments?: Record<string, unknown>; _meta?: Record<string, unknown> };
  readonly result?: { action?: string; content?: Record<string, unknown> };
}

const send = (message: object): void =>
  void process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const text = (line: string, more: object = {}) => ({ content: [{ type: "text", text: line }], ...more });

/** Dies as a killed process does, once: the next process of the same folder lives. */
function dieAt(place: string): void {
  if (process.env.BANK_DIES !== place || existsSync(died)) return;
  writeFileSync(died, place);
  process.kill(process.pid, "SIGKILL");
}

const entries = () => (existsSync(ledger) ? readFileSync(ledger, "utf8").split("\n").filter(Boolean) : []);

let questions = 0;
const waiting = new Map<string, (answer: Message["result"]) => void>();
function elicit(message: string): Promise<Message["result"]> {
  const id = `ask-${++questions}`;
  const requestedSchema = { type: "object", properties: { seat: { type: "string" } }, required: ["seat"] };
  send({ id, method: "elicitation/create", params: { message, requestedSchema } });
  return new Promise((resolve) => waiting.set(id, resolve));
}

async function call({ name, arguments: args = {}, _meta }: NonNullable<Message["params"]>): Promise<object> {
  const log = (what: string) => appendFileSync(ledger, `${JSON.stringify({ what, args, _meta })}\n`);
  switch (name) {
    case "find": {
      const found = entries().filter((line) => line.includes('"pay"') && line.includes(`"invoice":"${args.invoice}"`));
      return text(String(found.length), { structuredContent: { paid: found.length } });
    }
    case "pay":
      dieAt("before");
      log("pay");
      dieAt("after");
      return text(`paid ${args.invoice}`, { structuredContent: { receipt: `r-${args.invoice}` } });
    case "note":
      dieAt("before");
      log("note");
      dieAt("after");
      return text("noted");
    case "refuse":
      return text("the account is closed", { isError: true });
    case "book": {
      const answer = await elicit("which seat?");
      if (answer?.action !== "accept") return text("no seat was chosen", { isError: true });
      log(`book ${answer.content?.seat}`);
      return text(`booked ${answer.content?.seat}`);
    }
    default:
      throw Object.assign(new Error(`no tool ${name}`), { code: -32_602 });
  }
}

async function answer({ id, method, params = {} }: Message): Promise<void> {
  try {
    if (method === "tools/call") send({ id, result: await call(params) });
    else if (method === "initialize") {
      send({
        id,
        result: {
          protocolVersion: "2025-06-18",
          capabilities: { tools: {} },
          serverInfo: { name: "bank", version: "1" },
        },
      });
    } else if (method === "tools/list") {
      const tool = (name: string, annotations?: object) => ({
        name,
        inputSchema: { type: "object" },
        ...(annotations && { annotations }),
      });
      const tools = [
        tool("find", { readOnlyHint: true }),
        tool("note", { idempotentHint: true, readOnlyHint: false }),
        tool("pay"),
      ];
      send({ id, result: { tools } });
    } else send({ id, error: { code: -32_601, message: `no method ${method}` } });
  } catch (error) {
    const { message, code = -32_603 } = error as { message: string; code?: number };
    send({ id, error: { code, message } });
  }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line) as Message;
  if (message.method !== undefined && message.id !== undefined) void answer(message);
  else waiting.get(String(message.id))?.(message.result);
});
