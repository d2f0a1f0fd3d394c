import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TapeEvent } from "../../src/events/event.ts";

/** One event as the receiver has seen it. */
export interface LedgerEntry {
  readonly id: string;
  readonly journal: string;
  readonly sequence: string;
  readonly token: bigint;
  /** How often the store had been restored. */
  readonly epoch: number;
  /** The process that sent it, as its requests say in `x-worker`. */
  readonly worker?: string;
}

/** Instead of a status: the connection is cut. */
export const noAnswer = 0;

/** A receiver of CloudEvents with a ledger of its own, which survives every fan-out. */
export class Receiver {
  readonly ledger: LedgerEntry[] = [];
  /** The ids in the ledger. */
  readonly received = new Set<string>();
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", async () => {
      const worker = request.headers["x-worker"];
      const status = await this.respond(worker === undefined ? "" : String(worker));
      if (status === noAnswer) return void request.socket.destroy();
      if (status < 300) {
        const events = JSON.parse(Buffer.concat(chunks).toString()) as TapeEvent[];
        const entries = events.map((event) =>
          this.#enter(event, worker === undefined ? {} : { worker: String(worker) }),
        );
        if ((await this.entered(entries)) === noAnswer) return void request.socket.destroy();
      }
      this.#changed();
      response.writeHead(status).end();
    });
    request.on("error", () => {});
  });
  /** The status of the next request; it may make it wait. With {@link noAnswer} nothing is entered. */
  respond: (worker: string) => number | Promise<number> = () => 204;
  /** Called with what was entered, before the response. With {@link noAnswer} the response is lost. */
  entered: (entries: readonly LedgerEntry[]) => unknown = () => {};
  #changed: () => void = () => {};

  async listen(port = 0): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
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

  #enter(
    { id, tapejournal, sequence, tapetoken, tapeepoch }: TapeEvent,
    sender: { readonly worker?: string },
  ): LedgerEntry {
    this.received.add(id);
    const inbox = id.includes("i:") ? "i" : "";
    const place = { id, journal: `${tapejournal}${inbox}`, sequence };
    const entry = { ...place, token: BigInt(tapetoken), epoch: tapeepoch, ...sender };
    this.ledger.push(entry);
    return entry;
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

/** Repeats of each term behind the first: events that were received under an earlier one. */
export function repeatsByToken(ledger: readonly LedgerEntry[]): number[] {
  const received = new Set<string>();
  const repeats = new Map<bigint, number>();
  for (const { id, token } of ledger) {
    repeats.set(token, (repeats.get(token) ?? 0) + (received.has(id) ? 1 : 0));
    received.add(id);
  }
  return [...repeats].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, count], k) => (k === 0 ? [] : [count]));
}
