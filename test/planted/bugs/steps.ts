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
