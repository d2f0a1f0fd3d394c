import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TapeEvent } from "../../src/events/event.ts";

/** One event as the receiver has seen it. */
export interface LedgerEntry {
  readonly id: string;
  readonly journal: string;
  readonly sequence: string;
  readonly token: bigint;
}

/** A receiver of CloudEvents with a ledger of its own, which survives every fan-out. */
export class Receiver {
  readonly ledger: LedgerEntry[] = [];
  /** The ids in the ledger. */
  readonly received = new Set<string>();
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", async () => {
      const status = await this.respond();
      if (status < 300)
        for (const event of JSON.parse(Buffer.concat(chunks).toString()) as TapeEvent[]) this.#enter(event);
      this.#changed();
      response.writeHead(status).end();
    });
    request.on("error", () => {});
  });
  /** The status of the next request; it may make it wait. */
  respond: () => number | Promise<number> = () => 204;
  #changed: () => void = () => {};

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/events`;
  }

  /** Waits until the ledger satisfies the condition, which is checked with every request. */
  async until(condition: (ledger: readonly LedgerEntry[]) => boolean): Promise<void> {
    while (!condition(this.ledger)) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #enter({ id, tapejournal, sequence, tapetoken }: TapeEvent): void {
    this.received.add(id);
    const inbox = id.includes("i:") ? "i" : "";
    this.ledger.push({ id, journal: `${tapejournal}${inbox}`, sequence, token: BigInt(tapetoken) });
  }
}

export interface Verdict {
  /** Records that never arrived. */
  readonly lost: number;
  /** First deliveries that came after a later one of the same journal. */
  readonly outOfOrder: number;
  readonly repeats: number;
}

/** Compares a ledger with all records that were to be sent. */
export function judge(ids: Iterable<string>, ledger: readonly LedgerEntry[]): Verdict {
  const received = new Set<string>();
  const last = new Map<string, string>();
  let outOfOrder = 0;
  for (const { id, journal, sequence } of ledger) {
    if (received.has(id)) continue;
    received.add(id);
    if ((last.get(journal) ?? "") > sequence) outOfOrder++;
    last.set(journal, sequence);
  }
  const lost = [...ids].filter((id) => !received.has(id)).length;
  return { lost, outOfOrder, repeats: ledger.length - received.size };
}
