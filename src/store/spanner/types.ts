/** Parameters with the number of a journal: the tables hold it with its bits reversed (numbers.ts). */
export const journals: ReadonlySet<string> = new Set(
  "journal run root parent item authority newAuthority source by below".split(" "),
);

/** Parameters with payloads, which are stored as bytes. */
export const payloads: ReadonlySet<string> = new Set(
  "args body erased outcome payload response seen spec value".split(" "),
);

/** Statements with a parameter of such a name that is a short text: the value of a label. */
export const withTexts: ReadonlySet<string> = new Set(["run.by_label"]);

/** Parameters with journals as the text of a JSON list. */
export const lists: ReadonlySet<string> = new Set(["journals", "runs", "roots"]);

const whole =
  "afterJournal afterSeq againAt attempt before below bytes cap concurrency delayMs dueAt endedSince endedUntil item keyConcurrency keyRateBurst keyRateUs maxDelayMs maxStallMs minAgeMs newAuthority nextAt nonce parent parentPos pos rateBurst rateUs retainMs runs schedules sendWithinMs source stamp startedSince startedUntil streams sub token until weight";
const truths = "uncertain surplus counted expires";

/** The types of parameters that may be null; the others are texts. */
export const nullTypes: ReadonlyMap<string, "int64" | "bool" | "bytes"> = new Map([
  ...whole.split(" ").map((name) => [name, "int64"] as const),
  ...truths.split(" ").map((name) => [name, "bool"] as const),
  ...[...payloads].map((name) => [name, "bytes"] as const),
]);
