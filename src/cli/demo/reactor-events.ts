import type { Tape } from "../../host/tape.ts";
import type { FeedRecord } from "../../store/contract/store.ts";

/** One thing that a reactor did, and in which process. */
export interface ReactorEvent {
  readonly reactor: string;
  /** "-" for timers: they hold no lease, so the journal has no owner's name. */
  readonly label: string;
  readonly event: string;
}

/** What reactors did for a run and its effects, in the order of their journals. */
export async function reactorEvents(app: Tape, run: string): Promise<ReactorEvent[]> {
  const effects = new Map(
    [...(await app.effects.list({ run })), ...(await app.obligations.list({ run }))].map((row) => [row.item, row]),
  );
  const { records } = await app.store.read.feed(undefined, 1_000, app.tenant);
  const terms = new Map<number, { readonly reactor: string; readonly label: string }>();
  return records.flatMap((record): ReactorEvent[] => {
    if (record.kind === "timer.fired" && record.in === "inbox") {
      return [{ reactor: "timers", label: "-", event: `fired the ${record.data.purpose}` }];
    }
    if (record.in === "inbox") return [];
    if (record.kind === "term.started") terms.set(record.journal, record.data);
    const term = terms.get(record.journal);
    const event = eventIn(record);
    if (term === undefined || term.reactor === "agent" || event === undefined) return [];
    const effect = effects.get(record.journal);
    const { reactor, label } = term;
    return [
      { reactor, label, event: effect === undefined ? event : `${event}: ${effect.name}${suffixes[effect.role]}` },
    ];
  });
}

const suffixes = { effect: "", compensation: " (compensation)" } as const;

function eventIn(record: FeedRecord): string | undefined {
  switch (record.kind) {
    case "term.started":
      return record.data.reactor === "recovery" ? `resumed the run (${record.data.reason})` : undefined;
    case "effect.dispatched":
      return record.data.run === undefined ? undefined : "called upstream";
    case "effect.observed":
      return `observed (${record.data.observation})`;
    case "effect.settled":
    case "obligation.settled":
      return record.data.run === undefined ? undefined : `settled ${record.data.to} (${record.data.reason})`;
    case "run.ended":
      return `ended the run: ${record.data.status}`;
    default:
      return undefined;
  }
}
