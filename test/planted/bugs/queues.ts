import type { Bug } from "../bug.ts";

const busy =
  "select coalesce(sum(p.running), 0) as running from queue_partitions p where p.queue = :queue and p.busy = 1;";

export const queueBugs: readonly Bug[] = [
  {
    name: "expiry frees the slot",
    planted: "a run that is taken over after its lease expired gives up its slot",
    why: "Visibility timeouts do this: the message is free again, while its worker may still work on it.",
    patches: [
      {
        file: "store/sql/plans/claim.ts",
        find: '  const term = yield* takeTerm(lease, now, { claimant, nonce, expect: "free_or_expired", ...pin });\n  if (term === undefined) return undefined;\n  return { ...term, ...found, ...name };',
        replace:
          '  if (lease.owner !== null) yield* moveSlot(context, journal, { of: "released", wanted: false });\n  const term = yield* takeTerm(lease, now, { claimant, nonce, expect: "free_or_expired", ...pin });\n  if (term === undefined) return undefined;\n  return { ...term, ...found, ...name };',
      },
    ],
    detectedBy: ["slotsHold", "slotsAreProjected"],
    kind: "with queues",
    within: 500,
  },
  {
    name: "cancelled run still counted",
    planted: "a run that is cancelled in its queue stays in the counter of its key",
    why: "The counter is kept beside the rows, and one of the ways out forgets it.",
    patches: [
      {
        file: "store/sql/plans/slots.ts",
        find: '    if (from.state === "QUEUED") context.partitions.leave(queue, key);\n',
        replace: "",
      },
    ],
    detectedBy: ["slotsAreProjected"],
    kind: "with queues",
    within: 200,
  },
  {
    name: "limit read before the lock",
    planted: "the slots in use are counted in a transaction of their own, before the one that admits",
    why: "Count, then claim: two workers count at the same time, and both find the last slot free.",
    patches: [
      {
        file: "store/sqlite/backend.ts",
        find: "    const { committer, heads } = this.#options;\n    return committer.submit(request.tenant, (session) => {\n      const terms = this.#perform(session, () => admitPlan(request, queue, room));",
        replace:
          '    const { committer, heads } = this.#options;\n    const id = (await this.read(queryRow("queue.find", { tenant: request.tenant, name: queue })))?.id ?? 0;\n    const seen = Number((await this.read(queryRow("queue.busy", { queue: id })))?.running);\n    await new Promise((resolve) => setImmediate(resolve));\n    return committer.submit(request.tenant, (session) => {\n      const terms = this.#perform(session, () => admitPlan(request, queue, room, seen));',
      },
      {
        file: "store/sql/plans/admit.ts",
        find: '  const running = Number((yield* queryRow("queue.busy", { queue: queue.id }))?.running);\n',
        replace: "  const running = arguments[3];\n",
      },
    ],
    detectedBy: ["slotsHold"],
    kind: "with queues",
    within: 500,
  },
  {
    name: "wake passes the queue",
    planted: "a note takes a parked run out of its queue, and recovery drives it without a slot",
    why: "A resumed run is already admitted, as far as the code that resumes it is concerned.",
    patches: [
      {
        file: "model/slot.ts",
        find: '    case "noted":\n      return state === "PARKED" ? back : same;',
        replace: '    case "noted":\n      return state === "PARKED" ? undefined : same;',
      },
    ],
    detectedBy: ["slotsHold", "slotsAreProjected", "projectionMatches", "noRunForgotten"],
    kind: "with queues",
    within: 200,
  },
  {
    name: "end forgets the key",
    planted: "a run that leaves returns no slot to the counter of its key",
    why: "Hatchet pins slots forever when an assignment fails; Kestra had four ways to lose one.",
    patches: [
      {
        file: "store/sql/plans/slots.ts",
        find: '    if (from.state === "HELD") context.partitions.return(queue, key);\n',
        replace: "",
      },
    ],
    detectedBy: ["slotsAreProjected", "queuesMove"],
    kind: "with queues",
    within: 50,
  },
  {
    name: "blocked run passed",
    planted: "a waiting run that an operator holds is passed by the next one of its key",
    why: "SKIP LOCKED skips: what is locked for a moment loses its place.",
    patches: [
      {
        file: "store/sql/plans/admit.ts",
        find: '    const runs = yield* queryRows("queue.heads", { queue: queue.id, key, limit });',
        replace:
          '    const runs = (yield* queryRows("queue.heads", { queue: queue.id, key, limit: limit + 5 })).filter((run) => run.token !== null);',
      },
    ],
    detectedBy: ["oldestFirst"],
    kind: "with queues",
    within: 500,
  },
  {
    name: "virtual time stands still",
    planted: "a key that was served does not go behind the others",
    why: "Round robin that forgets where it was starts with the first key again.",
    patches: [
      {
        file: "model/queue-turns.ts",
        find: "  return vtime + Math.ceil((starts * startCost * weightUnit) / weight);",
        replace: "  return weight > 0 || starts > 0 ? vtime : startCost * weightUnit;",
      },
    ],
    detectedBy: ["fairAmongKeys"],
    kind: "with queues",
    within: 500,
  },
  {
    name: "rate not counted when a run starts",
    planted: "the rate of a queue is not charged by the admission",
    why: "A limiter in front of the queue counts the calls that enqueue, not the work that starts.",
    patches: [
      {
        file: "model/admission.ts",
        find: "    tat: rateAfter(queue.tat, nowMs, pace, firstStarts),",
        replace: "    tat: rateAfter(queue.tat, nowMs, pace, 0),",
      },
    ],
    detectedBy: ["ratesHold"],
    kind: "with queues",
    within: 200,
  },
  {
    name: "debounce changes a started run",
    planted: "a further start of a debounced run is added although its timer has fired",
    why: "The key is dropped when the run ends, not when it starts.",
    patches: [
      {
        file: "store/sql/plans/slots.ts",
        find: '  if (move.from.state === "DELAYED") yield* query("business_key.drop", { run: journal, pos: debouncePos });\n',
        replace:
          '  if (move.from.state === "HELD") yield* query("business_key.drop", { run: journal, pos: debouncePos });\n',
      },
      {
        file: "store/sql/plans/start.ts",
        find: '  if ((yield* query("timer.move", move)).count === 0) return undefined;\n',
        replace: '  yield* query("timer.move", move);\n',
      },
    ],
    detectedBy: ["lastInputWins", "projectionMatches"],
    kind: "with queues",
    within: 500,
  },
  {
    name: "slots of a dead process counted as free",
    planted: "runs whose holder has not renewed for half a TTL do not count towards the limit",
    why: "A count of live workers forgets that a paused one is not dead.",
    patches: [
      {
        file: "store/sqlite/sql/queues.sql",
        find: busy,
        replace:
          "select count(*) as running from queue_slots s cross join leases l on l.journal = s.journal where s.queue = :queue and s.state = 'HELD' and (l.owner is null or l.renewed_at > :now - l.ttl_ms / 2);",
      },
    ],
    detectedBy: ["slotsHold"],
    kind: "with queues",
    within: 500,
  },
];
