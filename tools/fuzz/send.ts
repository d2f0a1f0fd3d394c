import { type Agent, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { gunzipSync } from "node:zlib";
import { bodyBytes, type Shot } from "./shot.ts";

/** A response. */
export interface Reply {
  /** 0: none. */
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  /** It was read completely; false if the sender left early or the connection was cut. */
  readonly whole: boolean;
  /** The server did not respond within the longest time that a client waits. */
  readonly timedOut: boolean;
}

/** Longer than any wait that the contract allows, which is half a minute. */
const patienceMs = 45_000;
/** For a request that announces more than it sends: the server waits a minute for the rest, so there is nothing to wait for. */
const unfinishedMs = 500;
/** After this long without data a socket counts as finished. */
const quietMs = 150;
const maxBytes = 64 * 2 ** 20;

const framing: ReadonlySet<string> = new Set(["content-length", "transfer-encoding", "expect"]);

export function send(shot: Shot, port: number, agent: Agent): Promise<Reply[]> {
  return shot.raw === undefined ? sendCall(shot, port, agent).then((reply) => [reply]) : sendRaw(shot, port);
}

function sendCall(shot: Shot, port: number, agent: Agent): Promise<Reply> {
  const { method, target, headers, cutMs } = shot;
  const chunks: Buffer[] = [];
  let response: IncomingMessage | undefined;
  let timedOut = false;
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      const { statusCode = 0, headers: received = {}, complete = false } = response ?? {};
      const bytes = Buffer.concat(chunks);
      resolve({ status: statusCode, headers: received, text: textOf(bytes, received), whole: complete, timedOut });
    };
    const body = bodyBytes(shot);
    const length = body === undefined ? {} : { "content-length": String(body.length) };
    let call: ReturnType<typeof request>;
    try {
      const path = target.replaceAll(/[^\u0021-\u00ff]/g, encodeURIComponent);
      // A request with a wrong length, or none, leaves a connection that no other request can use.
      const plain = Object.keys(headers).every((name) => !framing.has(name));
      const options = { host: "127.0.0.1", port, method, path, headers: { ...length, ...headers } };
      call = request({ ...options, agent: plain && agent }, (incoming) => {
        response = incoming;
        let size = 0;
        incoming.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size <= maxBytes) chunks.push(chunk);
          else call.destroy();
        });
        incoming.once("close", end);
      });
    } catch {
      // Node's client rejects such a header; it can only be sent over a raw socket.
      resolve({ status: 0, headers: {}, text: "", whole: false, timedOut: false });
      return;
    }
    const finished = Number(headers["content-length"] ?? 0) <= (body?.length ?? 0);
    const timer = setTimeout(
      () => {
        timedOut = cutMs === undefined && finished;
        call.destroy();
      },
      cutMs ?? (finished ? patienceMs : unfinishedMs),
    );
    call.once("error", () => {
      if (response === undefined) end();
    });
    call.end(body);
  });
}

function textOf(bytes: Buffer, headers: IncomingMessage["headers"]): string {
  if (headers["content-encoding"] !== "gzip") return bytes.toString("utf8");
  try {
    return gunzipSync(bytes).toString("utf8");
  } catch {
    return ""; // the response was cut off
  }
}

/** Sends raw bytes and returns all responses, in order. */
async function sendRaw({ raw = "" }: Shot, port: number): Promise<Reply[]> {
  const socket = connect(port, "127.0.0.1");
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("error", () => {}); // a reset also ends it
  socket.setTimeout(quietMs, () => socket.destroy());
  socket.end(Buffer.from(raw, "base64"));
  await new Promise((resolve) => socket.once("close", resolve));
  return repliesIn(Buffer.concat(chunks).toString("utf8"));
}

function repliesIn(text: string): Reply[] {
  const starts = [...text.matchAll(/HTTP\/1\.1 (\d{3})[^\r\n]*\r\n/g)];
  return starts.map((start, k) => {
    const whole = text.slice(start.index, starts[k + 1]?.index);
    const [head = "", ...rest] = whole.split("\r\n\r\n");
    const lines = head.split("\r\n").slice(1);
    const headers = Object.fromEntries(
      lines.map((line) => {
        const cut = line.indexOf(":");
        return [line.slice(0, cut).toLowerCase(), line.slice(cut + 1).trim()];
      }),
    );
    return { status: Number(start[1]), headers, text: rest.join("\r\n\r\n"), whole: false, timedOut: false };
  });
}
