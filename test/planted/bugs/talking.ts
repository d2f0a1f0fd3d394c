import type { Bug } from "../bug.ts";

export const talkingBugs: readonly Bug[] = [
  {
    name: "a stale driver publishes",
    planted: "what a run shows is written without the fence, so a replaced owner shows an older value",
    why: "Progress is only for people, so it is written on the side, without the checks of real work.",
    patches: [
      {
        file: "store/sql/plans/append.ts",
        find: "  if (row === undefined) return yield* appendRetryPlan(fence, entry);\n  const recordContext",
        replace: `  if (row === undefined) {
    const shown = records.filter(({ kind }) => kind === "state.published");
    if (shown.length === 0) return yield* appendRetryPlan(fence, entry);
    for (const { data } of shown) {
      yield* query("published.put", { ...data, run: journal, value: JSON.stringify(data.value), seq: after + 1, max: 32 });
    }
    return { head: after + records.length, notes: 0 };
  }
  const recordContext`,
      },
    ],
    detectedBy: ["publishedIsFenced", "projectionMatches"],
    kind: "with a talker",
    within: 500,
  },
  {
    name: "a stale driver labels",
    planted: "labels are written without the fence, so a replaced owner brings back what its successor has changed",
    why: "Labels are only for finding runs, so they are written on the side, without the checks of real work.",
    patches: [
      {
        file: "store/sql/plans/append.ts",
        find: "  if (row === undefined) return yield* appendRetryPlan(fence, entry);\n  const recordContext",
        replace: `  if (row === undefined) {
    const labels = records.filter(({ kind }) => kind === "labels.set");
    if (labels.length === 0) return yield* appendRetryPlan(fence, entry);
    for (const { data } of labels) {
      const texts = { set: JSON.stringify(data.set), unset: JSON.stringify(data.unset) };
      yield* setLabels({ do: "labels.set", run: journal, ...texts, max: 16 }, tenant);
    }
    return { head: after + records.length, notes: 0 };
  }
  const recordContext`,
      },
    ],
    detectedBy: ["labelsAreProjected", "projectionMatches"],
    kind: "with a talker",
    within: 500,
  },
  {
    name: "a reply goes to the newest asker",
    planted: "the code answers the last note of the inbox instead of the request that it has taken",
    why: "A reply without a correlation id goes to the connection that is open: right, as long as one client asks.",
    patches: [
      {
        file: "engine/context/talk.ts",
        find: "...(note !== undefined && { note })",
        replace: "...(note !== undefined && { note: ops.drive.waits.notesTaken })",
      },
    ],
    detectedBy: ["repliesMatch", "oneRequestPerKey"],
    kind: "with a talker",
    within: 200,
  },
  {
    name: "start creates and the signal is lost",
    planted: "a start that creates the run leaves its signals to the next call",
    why: "Create, then signal: a client that dies in between leaves a run that waits for a message that was sent.",
    patches: [
      {
        file: "store/sql/plans/intake.ts",
        find: "for (const signal of signals) notes =",
        replace: "for (const signal of created.fresh ? [] : signals) notes =",
      },
    ],
    detectedBy: ["acknowledgedIsPresent"],
    kind: "with a talker",
    within: 50,
  },
  {
    name: "a token of another position opens it",
    planted: "the token of a callback proves its run and not its position",
    why: "A token that is signed as a whole but checked in parts: its holder edits the part that nothing protects.",
    patches: [
      {
        file: "model/callback-token.ts",
        find: '"sha256", secret).update(',
        replace: '"sha256", secret).update("tape-callback/1", void ',
      },
    ],
    detectedBy: ["callbacksOnce"],
    kind: "with a talker",
    within: 200,
  },
];
