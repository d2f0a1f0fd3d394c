import type { TapeEvent } from "../../src/events/event.ts";
import type { Delivery, SendContext, Sink } from "../../src/events/sink.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { step } from "../../testkit/conformance/frame.ts";

/** One call of a sink. */
export interface ReceivedCall {
  readonly events: readonly TapeEvent[];
  readonly attempt: number;
  readonly token: bigint;
}

/** A receiver with a ledger of its own. `judge` decides how each event is received; default: ok. */
export class WorldSink implements Sink {
  readonly label = "world";
  readonly limits: { readonly events: number; readonly bytes?: number };
  readonly calls: ReceivedCall[] = [];
  /** Events in the order in which they were received. */
  readonly ledger: TapeEvent[] = [];
  judge: (event: TapeEvent, context: SendContext) => Delivery | Promise<Delivery> = () => "ok";
  closed = false;

  constructor(events = 100, bytes?: number) {
    this.limits = { events, ...(bytes !== undefined && { bytes }) };
  }

  async send(events: readonly TapeEvent[], context: SendContext): Promise<readonly Delivery[]> {
    this.calls.push({ events, attempt: context.attempt, token: context.token });
    const deliveries: Delivery[] = [];
    for (const event of events) {
      const delivery = await this.judge(event, context);
      deliveries.push(delivery);
      if (delivery !== "ok") break; // what is behind it is not received
      this.ledger.push(event);
    }
    return deliveries;
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }

  ids(): string[] {
    return this.ledger.map(({ id }) => id);
  }

  kinds(): string[] {
    return this.ledger.map(({ type }) => type.replace("dev.tape.", ""));
  }
}

/** A run with some steps and an end, of the tenant `default`. */
export async function finished(store: Store, steps = 2, of = "default", more: object = {}): Promise<string> {
  const [created] = await store.intake.createRuns(
    of,
    [{ id: `run-${++runs}`, workflow: "w", input: { secret: 1 }, ...more }],
    {
      ...{ owner: "o", label: "l", reactor: "agent", ttlMs: 60_000, nonce: BigInt(runs) },
    },
  );
  if (!created?.ok || created.term === undefined) throw new Error("the run was not created");
  const { fence } = created.term;
  const records = Array.from({ length: steps }, (_, k) => step(k));
  const end = {
    kind: "run.ended" as const,
    data: { status: "COMPLETED" as const, notesTaken: 0, outcome: { secret: 2 } },
  };
  await store.fenced.append(fence, { after: 1, records: [...records, end] });
  return `run-${runs}`;
}

let runs = 0;
