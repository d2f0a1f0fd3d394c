// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is the text of the source, not a template
import type { Bug } from "../bug.ts";

export const sinkBugs: readonly Bug[] = [
  {
    name: "cursor kept as a record",
    planted: "a fan-out writes a record for each move of its cursor",
    why: "The journal is where progress belongs. But the feed carries that record, too: the fan-out reads it, moves, and writes the next one.",
    patches: [
      {
        file: "events/term.ts",
        find: "      this.#saved = mark.cursor;\n",
        replace:
          '      const moved = { kind: "operator.action", data: { by: "sink", action: "moved", reason: "cursor" } } as const;\n      await this.#deps.store.fenced.append(this.#lease.fence, { after: this.#lease.head++, records: [moved] });\n      this.#saved = mark.cursor;\n',
      },
    ],
    detectedBy: ["storeRests"],
    kind: "with a sink",
    within: 50,
  },
  {
    name: "checkpoint before delivery",
    planted: "the checkpoint passes an event when it is read, not when it is received",
    why: "A consumer with automatic commits: what was in memory when the process died is never sent.",
    patches: [
      {
        file: "events/term.ts",
        find: "      this.#lanes.add(known.hash, { event, bytes, source, pending: this.#water.add(mark) });",
        replace:
          "      this.#water.pass(mark);\n      this.#lanes.add(known.hash, { event, bytes, source, pending: { mark, settled: false } });",
      },
    ],
    detectedBy: ["eventsAreComplete"],
    kind: "with a sink",
    within: 500,
  },
  {
    name: "failed send skipped",
    planted: "a lane continues behind an event that the sink has not received",
    why: "The error was logged, and the queue must not stop because of one message.",
    patches: [
      {
        file: "events/lanes.ts",
        find: '    if ("later" in delivery) return this.#rest(delivery.later, delivery.afterMs ?? 0);',
        replace:
          '    if ("later" in delivery) {\n      this.#options.callbacks.delivered(item);\n      return this.#remove([item]);\n    }',
      },
    ],
    detectedBy: ["eventsAreComplete"],
    kind: "with a sink",
    within: 500,
  },
  {
    name: "highest delivered as low-water mark",
    planted:
      "the checkpoint follows the last event that was delivered, although earlier ones of other lanes are under way",
    why: "Correct with one lane. With several, the offset that is committed last is not the one that was read last.",
    patches: [
      {
        file: "events/low-water.ts",
        find: "    while (this.#pending[first]?.settled === true) this.#mark = this.#pending[first++]!.mark;",
        replace:
          "    if (pending.mark.at >= this.#mark.at) this.#mark = pending.mark;\n    while (this.#pending[first]?.settled === true) first++;",
      },
    ],
    detectedBy: ["eventsAreComplete"],
    kind: "with a sink",
    within: 500,
  },
  {
    name: "checkpoint without a fence",
    planted: "a checkpoint is written, whichever process holds the lease",
    why: "An UPDATE by primary key: a process that was paused moves the cursor of its successor.",
    patches: [
      {
        file: "store/sqlite/sql/journals.sql",
        find: "where journal = :journal and tenant = :tenant and token = :token and nonce = :nonce and doomed = 0 and kind = 'name';",
        replace: "where journal = :journal and tenant = :tenant and :token > 0 and :nonce > 0 and kind = 'name';",
      },
    ],
    detectedBy: ["checkpointsAreFenced", "eventsAreComplete"],
    kind: "with a sink and several replicas",
    within: 500,
  },
  {
    name: "now taken again",
    planted: "a sink that begins now stores its first checkpoint only with the first events",
    why: "Reading the end of the feed writes nothing, so it looks repeatable. After a crash, now is later.",
    patches: [
      {
        file: "events/term.ts",
        find: "    await store.fenced.checkpoint(this.#lease.fence, checkpointText(checkpoint));\n    return checkpoint;",
        replace: "    return checkpoint;",
      },
    ],
    detectedBy: ["eventsAreComplete"],
    kind: "with a sink",
    within: 500,
  },
  {
    name: "event id without its time",
    planted: "an event's id is the number of its record alone",
    why: "Journal and number are unique, until a restored store gives the same numbers to other records, and receivers drop them as known.",
    patches: [
      {
        file: "events/event.ts",
        find: ":${seq}:${at}`;",
        replace: ":${seq}`;",
      },
    ],
    detectedBy: ["eventIdsAreUnique", "eventsAreComplete"],
    kind: "with a sink and a rewound store",
    within: 500,
  },
];
