import { type Agent, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { gunzipSync } from "node:zlib";
import { bodyBytes, type Shot } from "./shot.ts";

/** What came back. */
export interface Reply {
  /** 0: nothing did. */
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  /** All of it was read; false where the sender left before, or the connection was cut. */
  readonly whole: boolean;
  /** The server did not answer for as long as anybody waits. */
  readonly timedOut: boolean;
}

/** The longest that the contract lets a call wait is half a minute. */
const patienceMs = 45_000;
/** Who promises more than it sends waits for nothing: the server gives it a minute, and answers then or not at all. */
const unfinishedMs = 500;
/** A socket on which nothing happens has said what it has to say. */
const quietMs = 150;
const maxBytes = 64 * 2 ** 20;

const framing: ReadonlySet<string> = new Set(["content-length", "transfer-encoding", "expect"]);

export function send(shot: Shot, port: number, agent: Agent): Promise<Reply[]> {
  return shot.raw === undefined ? sendCall(shot, port, agent).then((one) => [one]) : sendRaw(shot, port);
}

function sendCall(shot: Shot, port: number, agent: Agent): Promise<Reply> {
  const { method, target, headers, cutMs } = shot;
  const chunks: Buffer[] = [];
  let answer: IncomingMessage | undefined;
  let timedOut = false;
  return new Promise((done) => {
    const end = (): void => {
      clearTimeout(timer);
      const { statusCode = 0, headers: answered = {}, complete = false } = answer ?? {};
      const bytes = Buffer.concat(chunks);
      done({ status: statusCode, headers: answered, text: textOf(bytes, answered), whole: complete, timedOut });
    };
    const body = bodyBytes(shot);
    const length = body === undefined ? {} : { "content-length": String(body.length) };
    let call: ReturnType<typeof request>;
    try {
      const path = target.replaceAll(/[^\u0021-\u00ff]/g, encodeURIComponent);
      // One that says another length than it has, or none, leaves a connection that nobody else can use.
      const plain = Object.keys(headers).every((name) => !framing.has(name));
      const options = { host: "127.0.0.1", port, method, path, headers: { ...length, ...headers } };
      call = request({ ...options, agent: plain && agent }, (one) => {
        answer = one;
        let size = 0;
        one.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size <= maxBytes) chunks.push(chunk);
          else call.destroy();
        });
        one.once("close", end);
      });
    } catch {
      // Node's client refuses to send such a header: it goes over a socket, or not at all.
      done({ status: 0, headers: {}, text: "", whole: false, timedOut: false });
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
      if (answer === undefined) end();
    });
    call.end(body);
  });
}

function textOf(bytes: Buffer, headers: IncomingMessage["headers"]): string {
  if (headers["content-encoding"] !== "gzip") return bytes.toString("utf8");
  try {
    return gunzipSync(bytes).toString("utf8");
  } catch {
    return ""; // it was cut off
  }
}

/** Whatever answers there are, in their order. */
async function sendRaw({ raw = "" }: Shot, port: number): Promise<Reply[]> {
  const socket = connect(port, "127.0.0.1");
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("error", () => {}); // a reset is an end too
  socket.setTimeout(quietMs, () => socket.destroy());
  socket.end(Buffer.from(raw, "base64"));
  await new Promise((closed) => socket.once("close", closed));
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
