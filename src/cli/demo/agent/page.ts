import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { uiResponse } from "../../../ai/ui-stream.ts";
import type { RunFollower } from "../../../host/follow-run.ts";

const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Tape: an agent that is killed twice</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/page.css"></head>
<body><h1>An agent that is killed twice</h1><main aria-live="polite"></main><script src="/page.js"></script></body></html>
`;

const css = `:root { color-scheme: light dark; font: 17px/1.5 system-ui, sans-serif }
body { max-width: 40rem; margin: 3rem auto; padding: 0 1rem } h1 { font-size: 1.2rem }
section { border-left: 3px solid #8886; padding-left: 1rem; margin: 1rem 0 } code { font-size: .85rem }
.back { border-color: #b58900 } .end { font-weight: 600 }
`;

/** Shows the chunks of the SDK's UI message stream. EventSource reconnects on its own, after the last event. */
const script = `const main = document.querySelector("main");
let step;
const add = (tag, text) => { const e = document.createElement(tag); e.textContent = text; (step ?? main).append(e); return e; };
let words;
const on = {
  "start-step": () => { step = undefined; step = add("section", ""); words = undefined; },
  "reset-step": () => { step.replaceChildren(); step.className = "back"; words = undefined; },
  "text-start": () => { words = add("p", ""); },
  "text-delta": ({ delta }) => { words.textContent += delta; },
  "tool-input-available": ({ toolName, input }) => { add("code", toolName + " " + JSON.stringify(input)); },
  "tool-output-available": ({ output }) => { add("code", " → " + JSON.stringify(output)); },
  finish: () => { step = undefined; add("p", "The run has ended.").className = "end"; },
};
const source = new EventSource("/events");
source.onmessage = ({ data }) => {
  if (data === "[DONE]") return source.close();
  const chunk = JSON.parse(data);
  on[chunk.type]?.(chunk);
};
`;

const files: Readonly<Record<string, readonly [type: string, text: string]>> = {
  "/": ["text/html; charset=utf-8", html],
  "/page.css": ["text/css; charset=utf-8", css],
  "/page.js": ["text/javascript; charset=utf-8", script],
};

/** The page of the demo, on this machine only. It reads the store and knows no worker. */
export class DemoPage {
  readonly #server: Server;
  readonly #app: RunFollower;
  readonly #run: string;

  private constructor(app: RunFollower, run: string) {
    this.#app = app;
    this.#run = run;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async open(app: RunFollower, run: string): Promise<DemoPage> {
    const page = new DemoPage(app, run);
    await new Promise<void>((resolve) => page.#server.listen(0, "127.0.0.1", resolve));
    return page;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { host, "last-event-id": after } = request.headers;
    // Another name for this address is a page of another site that wants to read it.
    if (`http://${host}` !== this.url) return void response.writeHead(421).end();
    const file = files[request.url ?? ""];
    response.setHeader("content-security-policy", "default-src 'self'");
    if (file !== undefined) return void response.writeHead(200, { "content-type": file[0] }).end(file[1]);
    if (request.url !== "/events") return void response.writeHead(404).end();
    await this.#stream(response, typeof after === "string" && /^\d+\.\d+$/.test(after) ? after : undefined);
  }

  async #stream(response: ServerResponse, after: string | undefined): Promise<void> {
    const left = new AbortController();
    response.on("close", () => left.abort());
    const events = uiResponse(this.#app, this.#run, { signal: left.signal, ...(after !== undefined && { after }) });
    response.writeHead(200, Object.fromEntries(events.headers));
    try {
      for await (const chunk of events.body!) response.write(chunk);
      response.end();
    } catch {
      response.destroy(); // the reader has left, or the run does not exist yet: it comes again
    }
  }
}
