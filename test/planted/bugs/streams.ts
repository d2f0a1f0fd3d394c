import type { Bug } from "../bug.ts";

export const streamBugs: readonly Bug[] = [
  {
    name: "chunks without a fence",
    planted: "chunks are appended at the end of the stream, without a comparison of the token",
    why: "Output is only for people: an insert at the next free offset, without the checks of real work.",
    patches: [
      {
        file: "store/sql/plans/streams.ts",
        find: "if (row === undefined) throw staleError(fence, yield* whyFenced(fence));\n  if (row.kind",
        replace: "if (row !== undefined && row.kind",
      },
      {
        file: "store/sql/plans/streams.ts",
        find: "const { name, from, retainMs = null, chunks } = stream;",
        replace: "const { name, retainMs = null, chunks } = stream;",
      },
      {
        file: "store/sql/plans/streams.ts",
        find: "  if (next !== from) {",
        replace: "  const from = next;\n  if (next !== from) {",
      },
    ],
    detectedBy: ["zombiesDoNotStream", "streamsAreExact"],
    kind: "with a streamer",
    within: 500,
  },
  {
    name: "result before its chunks",
    planted: "a body's result is recorded while its last chunks are still in memory",
    why: "The flush runs in the background anyway, so why wait: until a crash leaves a result without its stream.",
    patches: [
      {
        file: "engine/context/operations.ts",
        find: "if (streamed === undefined) this.#end(handle, value, record);\n    else void streamed.then(() => this.#end(handle, value, record)); // a result implies its chunks",
        replace: "void streamed;\n    this.#end(handle, value, record);",
      },
    ],
    detectedBy: ["streamsAreExact"],
    kind: "with a streamer",
    within: 500,
  },
  {
    name: "rewind forgets late joiners",
    planted: "a repeated attempt says that its part starts again, and leaves the chunks of the dead one",
    why: "Readers that are connected drop the part when they see the mark; one that joins later meets the dead attempt first.",
    patches: [
      {
        file: "store/sql/plans/streams.ts",
        find: 'yield* query("chunk.rewind", { run, stream: name, part });',
        replace: "",
      },
    ],
    detectedBy: ["streamsAreExact"],
    kind: "with a streamer",
    within: 500,
  },
  {
    name: "offset restarts after a takeover",
    planted: "a new term counts offsets from 0 again, and the store lets it",
    why: "A counter in memory starts where memory starts; readers that resume by offset wait forever.",
    patches: [
      { file: "engine/journal/run-streams.ts", find: "stream.next = view.next;", replace: "stream.next = 0;" },
      {
        file: "store/sql/plans/streams.ts",
        find: "  if (next !== from) {",
        replace: "  if (next !== from && from !== 0) {",
      },
    ],
    detectedBy: ["streamsAreExact", "livenessHolds", "clientCallsAnswered"],
    kind: "with a streamer",
    within: 500,
  },
];
