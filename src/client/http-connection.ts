import type { Socket } from "node:net";
import { Readable } from "node:stream";
import type { Clock } from "../base/clock.ts";
import { linesType } from "../protocol/transport.ts";
import { RequestNotSent, ResponseTooLarge } from "./errors.ts";
import { HeadMemory, type ResponseHead, ResponseParser } from "./response-parser.ts";

/** A response whose body is complete, or still arrives. */
export interface RawResponse extends ResponseHead {
  readonly body: Buffer | Readable;
}

export interface ExchangeOptions {
  /** HEAD: the response has no body. */
  readonly bodiless: boolean;
  readonly signal: AbortSignal | undefined;
}

export interface ConnectionOptions {
  readonly clock: Clock;
  /** The event after which the server may receive what is sent. */
  readonly event: "connect" | "secureConnect";
  readonly connectMs: number;
  readonly responseMs: number;
  readonly maxResponseBytes: number;
  /** Another request may be sent. */
  readonly onIdle: (connection: HttpConnection) => void;
  readonly onClosed: (connection: HttpConnection) => void;
}

/** The request in flight. */
interface Flight {
  readonly parser: ResponseParser;
  readonly resolve: (response: RawResponse) => void;
  readonly reject: (error: unknown) => void;
  /** Ends timers and the subscription to the caller's signal. */
  readonly stops: (() => void)[];
  readonly chunks: Buffer[];
  bytes: number;
  head?: ResponseHead;
  stream?: Readable;
}

/** A server closes a connection that has been idle for the announced time; ours is closed this much earlier. */
const earlierMs = 1_000;

/**
 * A connection to a server, with one request at a time. Node's own client takes three times as long for a small
 * request: it creates a dozen objects for each, and the server receives headers and body in two pieces.
 *
 *   connecting ──▶ idle ⇄ in flight ──▶ closed
 */
export class HttpConnection {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #heads = new HeadMemory();
  #established = false;
  #flight: Flight | undefined;
  /** When the server may close it, on the clock's monotonic time. */
  #idleUntil = Number.POSITIVE_INFINITY;

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    const { clock, event, connectMs, onClosed } = options;
    const hurry = clock.after(connectMs, () => this.#fail(new RequestNotSent(`no connection within ${connectMs} ms`)));
    socket.once(event, () => {
      this.#established = true;
      hurry();
    });
    socket.on("data", (bytes: Buffer) => this.#received(bytes));
    socket.on("error", (error) => this.#fail(error));
    socket.once("close", () => {
      hurry();
      this.#closed();
      onClosed(this);
    });
  }

  /** Whether a request may still be sent on it. */
  get usable(): boolean {
    return !this.#socket.destroyed && this.#socket.writable && this.#options.clock.mono() < this.#idleUntil;
  }

  /** Throws {@link RequestNotSent} if certainly nothing was sent. Only while no other request is in flight. */
  exchange(head: string, body: Uint8Array | undefined, options: ExchangeOptions): Promise<RawResponse> {
    return new Promise((resolve, reject) => {
      const { clock, responseMs } = this.#options;
      const parser = new ResponseParser(
        { head: (read) => this.#startResponse(read), data: (bytes) => this.#addBody(bytes), end: () => this.#finish() },
        this.#heads,
        options.bodiless,
      );
      const late = clock.after(responseMs, () =>
        this.#fail(new ResponseTooLarge(`no response within ${responseMs} ms`)),
      );
      this.#flight = { parser, resolve, reject, stops: [late], chunks: [], bytes: 0 };
      this.#socket.ref();
      if (options.signal !== undefined && this.#abortedBy(options.signal)) return;
      this.#send(head, body);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  /** In one piece: the server parses the request in one turn of its event loop. */
  #send(head: string, body: Uint8Array | undefined): void {
    if (body === undefined || body.length === 0) {
      this.#socket.write(head, "latin1");
      return;
    }
    this.#socket.cork();
    this.#socket.write(head, "latin1");
    this.#socket.write(body);
    this.#socket.uncork();
  }

  #abortedBy(signal: AbortSignal): boolean {
    const stop = (): void => this.#fail(new Error("the caller has aborted"));
    if (signal.aborted) {
      stop();
      return true;
    }
    signal.addEventListener("abort", stop, { once: true });
    this.#flight!.stops.push(() => signal.removeEventListener("abort", stop));
    return false;
  }

  #received(bytes: Buffer): void {
    if (this.#flight === undefined) {
      this.#socket.destroy(); // a server sends nothing unasked
      return;
    }
    try {
      this.#flight.parser.feed(bytes);
    } catch (error) {
      this.#fail(error);
    }
  }

  #startResponse(head: ResponseHead): void {
    const flight = this.#flight!;
    flight.head = head;
    const announced = Number(head.headers["content-length"] ?? 0);
    if (announced > this.#options.maxResponseBytes) throw this.#tooLong();
    const seconds = Number(/\btimeout=(\d{1,6})\b/.exec(head.headers["keep-alive"] ?? "")?.[1] ?? Number.NaN);
    if (!Number.isNaN(seconds)) this.#idleUntil = this.#options.clock.mono() + seconds * 1_000 - earlierMs;
    if (head.headers["content-type"]?.startsWith(linesType) !== true) return;
    flight.stops.shift()!(); // only its start has a limit
    const socket = this.#socket;
    flight.stream = new Readable({
      read: () => void socket.resume(),
      // Its reader needs no more of it, but the server would send it.
      destroy: (error, done) => {
        if (this.#flight === flight) socket.destroy();
        done(error);
      },
    });
    flight.stream.on("error", () => {}); // the reader gets it, if there is one
    flight.resolve({ ...head, body: flight.stream });
  }

  #addBody(bytes: Buffer): void {
    const flight = this.#flight!;
    if (flight.stream !== undefined) {
      if (!flight.stream.push(bytes)) this.#socket.pause();
      return;
    }
    flight.bytes += bytes.length;
    if (flight.bytes > this.#options.maxResponseBytes) throw this.#tooLong();
    flight.chunks.push(bytes);
  }

  #tooLong(): Error {
    return new Error(`the response is longer than ${this.#options.maxResponseBytes} bytes`);
  }

  #finish(): void {
    const { head, stream, chunks, resolve } = this.#land()!;
    if (head!.reusable && this.usable) {
      this.#socket.resume();
      this.#socket.unref(); // an idle connection keeps no process alive
      this.#options.onIdle(this);
    } else this.#socket.destroy();
    if (stream !== undefined) stream.push(null);
    else resolve({ ...head!, body: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) });
  }

  #land(): Flight | undefined {
    const flight = this.#flight;
    this.#flight = undefined;
    for (const stop of flight?.stops ?? []) stop();
    return flight;
  }

  /** Before the connection is established nothing was sent; afterwards the outcome is unknown. */
  #fail(error: unknown): void {
    const flight = this.#land();
    this.#socket.destroy();
    if (flight === undefined) return;
    if (flight.stream !== undefined) flight.stream.destroy(error as Error);
    else flight.reject(this.#established || error instanceof RequestNotSent ? error : notSent(error));
  }

  #closed(): void {
    try {
      this.#flight?.parser.close();
    } catch (error) {
      this.#fail(error);
    }
  }
}

function notSent(error: unknown): RequestNotSent {
  const { message, code } = error as Error & { code?: string };
  return new RequestNotSent(message || (code ?? "no connection"), error as Error);
}
