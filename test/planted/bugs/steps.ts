import type { Bug } from "../bug.ts";

export const stepBugs: readonly Bug[] = [
  {
    name: "a heartbeat counts as progress",
    planted: "every renewal reports progress, whether or not the holder has written anything",
    why: "A heartbeat shows that the process lives. Systems without another signal keep a wedged worker forever.",
    patches: [
      {
        file: "lease/lease.ts",
        find: "    if (this.#waits > 0) this.moved();\n",
        replace: "    this.moved();\n",
      },
    ],
    detectedBy: ["wedgedLoses"],
    kind: "with a wedged process",
    within: 200,
  },
  {
    name: "attempts counted in memory",
    planted: "a step's attempts are counted from one again in each process",
    why: "The loop around the call is the obvious place for the counter, and a crash resets it.",
    patches: [
      {
        file: "engine/context/steps.ts",
        find: "    const earlier = attemptRecords(ops.drive.history.byPos.get(handle.pos));\n",
        replace: "    const earlier = attemptRecords([]);\n",
      },
    ],
    detectedBy: ["attemptsAreCounted"],
    kind: "with retried steps",
    within: 200,
  },
  {
    name: "an outage fails the run",
    planted: "a decision whose attempts are used up fails, although the outage may last longer",
    why: "A loop of retries ends with a throw; the run fails, and an outage of an hour cancels what was booked.",
    patches: [
      {
        file: "model/attempt.ts",
        find: 'return attempt < attempts ? "retry" : "outlast";',
        replace: 'return attempt < attempts ? "retry" : "fail";',
      },
    ],
    detectedBy: ["outagesPark"],
    kind: "with an outage",
    within: 200,
  },
  {
    name: "an outage without end",
    planted: "the time of an outage counts its attempts, not the pauses between them",
    why: "A process that waits in a timer is not there to count, and so the upstream is called for weeks.",
    patches: [
      {
        file: "engine/context/outage.ts",
        find: "last.outage.ms + last.delayMs +",
        replace: "last.outage.ms +",
      },
    ],
    detectedBy: ["outagesPark"],
    kind: "with an outage",
    within: 200,
  },
  {
    name: "a blob after its record",
    planted: "the record of a value is appended while its large parts are still being stored",
    why: "The parts are content-addressed, so their order seems not to matter. A crash in between loses the answer.",
    patches: [
      {
        file: "store/blob-store.ts",
        find: "for (const part of parts.values()) await put(fence, part);",
        replace:
          "for (const part of parts.values()) void fenced.appendAll([]).then(() => put(fence, part)).catch(() => {});",
      },
      {
        file: "store/sql/plans/assert-blobs.ts",
        find: "    if (isWhole) continue;\n",
        replace: "    if (isWhole || true) continue;\n",
      },
    ],
    detectedBy: ["blobsAreWhole"],
    kind: "with models",
    within: 200,
  },
  {
    name: "lost call not presumed",
    planted: "a model that a lost term may have called is called again, and the first call is on no bill",
    why: "The call left no trace, and providers do not deduplicate: the budget sees one call, the invoice two.",
    patches: [
      {
        file: "engine/context/open-spend.ts",
        find: "return history.lostSeq > Math.max(this.#lastSeq, presumed);",
        replace: "return history.lostSeq > Math.max(this.#lastSeq, presumed) && false;",
      },
    ],
    detectedBy: ["lostCallsArePresumed"],
    kind: "with models",
    within: 200,
  },
  {
    name: "the late answer of a timed-out attempt is written",
    planted: "a body that returns after its time-out still writes the step's result",
    why: "A race against a timer ends the wait, not the call: its result arrives later, in the middle of the retry.",
    patches: [
      {
        file: "engine/context/step-attempt.ts",
        find: "this.#once(() => this.#outcomes.returned(value));",
        replace: "this.#outcomes.returned(value);",
      },
    ],
    detectedBy: ["lateResultsAreDropped"],
    kind: "with retried steps",
    within: 200,
  },
];
