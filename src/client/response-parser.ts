/** The status line and the headers of a response. */
export interface ResponseHead {
  readonly status: number;
  /** Lower-case names; values of a repeated name are joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether another request may follow on this connection. */
  readonly reusable: boolean;
}

interface ParsedHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly version: "0" | "1";
}

/** The latest head on a connection. Those of similar calls are equal for up to a second, and are parsed once. */
export class HeadMemory {
  #text = "";
  #parsed: ParsedHead | undefined;

  parse(text: string): ParsedHead {
    if (this.#parsed === undefined || text !== this.#text) this.#parsed = parseHead(text);
    this.#text = text;
    return this.#parsed;
  }
}

/** Receives the parts of one response, in this order. */
export interface ResponseSink {
  head(head: ResponseHead): void;
  data(bytes: Buffer): void;
  end(): void;
}

/** What a server's headers need at most; Node's own client has the same limit. */
const maxHeadBytes = 16 * 1024;
/** The size of a chunk, with extensions. */
const maxLineBytes = 1024;
const statusLine = /^HTTP\/1\.([01]) (\d{3})(?: |$)/;
const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const wholeNumber = /^\d{1,15}$/;
const chunkSize = /^([0-9a-fA-F]{1,12})[ \t]*(?:;.*)?$/;

type Awaits = "head" | "body" | "size" | "chunk" | "chunk end" | "trailer" | "close" | "nothing";

/**
 * Parses one HTTP/1.1 response. Strict: what two readers could read differently is an error, and the connection is not
 * used again.
 *
 *   head ──▶ body (a known length) ──────────────────────────────▶ nothing
 *     │ ──▶ size ──▶ chunk ──▶ chunk end ──▶ size … trailer ──────▶ nothing
 *     └────▶ close (everything until the connection ends) ────────▶ nothing
 */
export class ResponseParser {
  readonly #sink: ResponseSink;
  readonly #heads: HeadMemory;
  /** The response of a HEAD request has no body, whatever its headers announce. */
  readonly #bodiless: boolean;
  #awaits: Awaits = "head";
  /** Bytes left of the body or chunk. */
  #left = 0;
  /** The start of a head or line that has not arrived completely. */
  #rest: Buffer | undefined;
  #trailerBytes = 0;

  constructor(sink: ResponseSink, heads: HeadMemory, bodiless: boolean) {
    this.#sink = sink;
    this.#heads = heads;
    this.#bodiless = bodiless;
  }

  get done(): boolean {
    return this.#awaits === "nothing";
  }

  /** Throws if the bytes are no response, or more than one. */
  feed(bytes: Buffer): void {
    const data = this.#rest === undefined ? bytes : Buffer.concat([this.#rest, bytes]);
    this.#rest = undefined;
    for (let at = 0; at < data.length; ) {
      const next = this.#take(data, at);
      if (next === undefined) {
        this.#rest = data.subarray(at);
        return;
      }
      at = next;
    }
  }

  /** The connection has ended; throws if the response had not. */
  close(): void {
    if (this.#awaits === "close") this.#end();
    else if (!this.done) throw new Error("the answer broke off");
  }

  /** Takes what it can at this place, and returns the next one; undefined: more bytes are needed. */
  #take(data: Buffer, at: number): number | undefined {
    switch (this.#awaits) {
      case "head":
        return this.#takeHead(data, at);
      case "body":
      case "chunk":
        return this.#takeBody(data, at);
      case "size":
        return this.#takeLine(data, at, maxLineBytes, (line) => this.#startChunk(line));
      case "chunk end":
        return this.#takeLine(data, at, 0, () => {
          this.#awaits = "size";
        });
      case "trailer":
        return this.#takeLine(data, at, maxHeadBytes, (line) => this.#skipTrailer(line));
      case "close":
        this.#sink.data(at === 0 ? data : data.subarray(at));
        return data.length;
      case "nothing":
        throw new Error("the server sent more than one response");
    }
  }

  #takeHead(data: Buffer, at: number): number | undefined {
    const end = data.indexOf("\r\n\r\n", at, "latin1");
    if ((end < 0 ? data.length : end) - at > maxHeadBytes) throw new Error("the response's headers are too long");
    if (end < 0) return undefined;
    const head = this.#heads.parse(data.toString("latin1", at, end));
    if (head.status >= 200) this.#start(head);
    return end + 4; // a provisional response is followed by the one that counts
  }

  #start({ status, headers, version }: ParsedHead): void {
    const { connection = "", "transfer-encoding": coding, "content-length": length } = headers;
    if (coding !== undefined && (length !== undefined || coding.toLowerCase() !== "chunked"))
      throw new Error("the length of the response is ambiguous");
    if (length !== undefined && !wholeNumber.test(length)) throw new Error("the length of the response is no number");
    const empty = this.#bodiless || status === 204 || status === 304;
    const closes = !empty && coding === undefined && length === undefined;
    const reusable = version === "1" && !closes && !/\bclose\b/i.test(connection);
    this.#left = empty ? 0 : Number(length ?? 0);
    this.#awaits = empty ? "body" : coding !== undefined ? "size" : closes ? "close" : "body";
    this.#sink.head({ status, headers, reusable });
    if (this.#awaits === "body" && this.#left === 0) this.#end();
  }

  #takeBody(data: Buffer, at: number): number {
    const end = Math.min(data.length, at + this.#left);
    this.#left -= end - at;
    this.#sink.data(at === 0 && end === data.length ? data : data.subarray(at, end));
    if (this.#left > 0) return end;
    if (this.#awaits === "chunk") this.#awaits = "chunk end";
    else this.#end();
    return end;
  }

  #takeLine(data: Buffer, at: number, maxBytes: number, take: (line: string) => void): number | undefined {
    const end = data.indexOf("\r\n", at, "latin1");
    if ((end < 0 ? data.length - 1 : end) - at > maxBytes) throw new Error("a chunk of the response is malformed");
    if (end < 0) return undefined;
    take(data.toString("latin1", at, end));
    return end + 2;
  }

  #startChunk(line: string): void {
    const [, digits] = chunkSize.exec(line) ?? [];
    if (digits === undefined) throw new Error("a chunk of the response is malformed");
    this.#left = Number.parseInt(digits, 16);
    this.#awaits = this.#left === 0 ? "trailer" : "chunk";
  }

  #skipTrailer(line: string): void {
    this.#trailerBytes += line.length;
    if (this.#trailerBytes > maxHeadBytes) throw new Error("the response's trailers are too long");
    if (line === "") this.#end();
  }

  #end(): void {
    this.#awaits = "nothing";
    this.#sink.end();
  }
}

function parseHead(text: string): ParsedHead {
  const [first = "", ...lines] = text.split("\r\n");
  const [, version, code] = statusLine.exec(first) ?? [];
  if (code === undefined) throw new Error("the response is not HTTP/1.1");
  if (code === "101") throw new Error("the server changed the protocol");
  return { status: Number(code), headers: headersOf(lines), version: version as "0" | "1" };
}

function headersOf(lines: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon)).toLowerCase();
    if (!headerName.test(name)) throw new Error("a header of the response is malformed");
    const value = line.slice(colon + 1).trim();
    const earlier = headers[name];
    headers[name] = earlier === undefined ? value : `${earlier}, ${value}`;
  }
  return headers;
}
