/** OPEN: refused by its sink. REPLAY: an operator wants it sent again. SENT and DISCARDED are final. */
export const letterStates = ["OPEN", "REPLAY", "SENT", "DISCARDED"] as const;
/** What has become of a dead letter. */
export type LetterState = (typeof letterStates)[number];

/** An event that a sink refused, to be stored before the sink's checkpoint passes it. */
export interface NewDeadLetter {
  /** The event's id. */
  readonly event: string;
  /** Its record: the journal, its number there, and whether it is a note of the inbox. */
  readonly journal: number;
  readonly seq: number;
  /** Whether the record is a note of an inbox. */
  readonly inbox: boolean;
  readonly kind: string;
  readonly attempts: number;
  /** A short reason: the status of the response, or an error code. */
  readonly code: string;
  readonly error: string;
}

/** An event that a sink refused. */
export interface DeadLetter extends NewDeadLetter {
  readonly sink: string;
  /** When it was first stored, by the store's clock. */
  readonly at: number;
  readonly state: LetterState;
}

/** The leases of sinks have names of this form. */
export const sinkLease = (sink: string): string => `sink ${sink}`;
/** The sink of a lease; undefined: it belongs to none. */
export const sinkOfLease = (name: string): string | undefined =>
  name.startsWith("sink ") && name.length > 5 ? name.slice(5) : undefined;
