// A process with a reader for each run that it is asked for: events over HTTP, as a browser reads them.
import { Agent, get, type IncomingMessage } from "node:http";
import { percentile } from "../work.ts";
import { sharedNow } from "./shared-clock.ts";

/** The runs whose streams to read from now on. */
export interface ReadersRequest {
  readonly runs: readonly string[];
}

/** What the readers have received when the last stream has ended; delays in milliseconds from `write`. */
export interface ReadersMessage {
  readonly say: "read";
  readonly received: number;
  readonly p50: number;
  readonly p99: number;
  readonly worst: number;
}

const [server = ""] = process.argv.slice(2);
const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });

/** Reads one stream to its end. */
function read(run: string, delays: number[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const url = `${server}/v1/runs/${run}/streams/tokens`;
    const request = get(url, { agent, headers: { accept: "text/event-stream" } }, (response: IncomingMessage) => {
      let rest = "";
      response.setEncoding("utf8");
      response.on("data", (text: string) => {
        const now = sharedNow();
        const blocks = `${rest}${text}`.split("\n\n");
        rest = blocks.pop() ?? "";
        for (const block of blocks) {
          const sent = /"value":"([\d.]+) /.exec(block)?.[1];
          if (sent !== undefined) delays.push(now - Number(sent));
        }
      });
      response.on("end", resolve);
      response.on("error", reject);
    });
    request.on("error", reject);
  });
}

process.on("disconnect", () => process.exit());
process.on("message", async ({ runs }: ReadersRequest) => {
  const delays: number[] = [];
  await Promise.all(runs.map((run) => read(run, delays)));
  const [p50, p99, worst] = [percentile(delays, 0.5), percentile(delays, 0.99), Math.max(...delays)];
  const message: ReadersMessage = { say: "read", received: delays.length, p50, p99, worst };
  process.send!(message);
});
