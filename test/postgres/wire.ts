export interface Message {
  /** One letter of the PostgreSQL protocol; empty for a client's messages before types are used. */
  type: string;
  /**
   * The payload, for matching. Binary parts become replacement characters; SQL and text parameters stay as they are.
   */
  text: string;
  bytes: Buffer;
}

/**
 * Splits one direction of a PostgreSQL connection into its messages, however TCP has split it. Faults are injected
 * between messages, so that the meaning of a cut does not depend on packet sizes.
 */
export class WireSplitter {
  #rest: Buffer = Buffer.alloc(0);
  #typed: boolean;

  /** A client's first message has no type letter; a server's messages always have one. */
  constructor(side: "client" | "server") {
    this.#typed = side === "server";
  }

  push(chunk: Buffer): Message[] {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    const messages: Message[] = [];
    for (;;) {
      const header = this.#typed ? 1 : 0;
      if (this.#rest.length < header + 4) return messages;
      const end = header + this.#rest.readUInt32BE(header);
      if (this.#rest.length < end) return messages;
      const bytes = this.#rest.subarray(0, end);
      this.#rest = this.#rest.subarray(end);
      messages.push({
        type: bytes.toString("latin1", 0, header),
        text: bytes.toString("utf8", header + 4),
        bytes,
      });
      this.#typed = true;
    }
  }
}
