import type { Bug } from "../bug.ts";

export const alarmBugs: readonly Bug[] = [
  {
    name: "a wake-up and no alarm",
    planted: "a start or a signal is announced by a wake-up alone, without an alarm before its commit",
    why: "The wake-up nearly always arrives. A process that dies between commit and wake-up leaves work that nothing finds.",
    patches: [
      {
        file: "alarm/armed-store.ts",
        find: "exempt(name, args) ? call.apply(target, args)",
        replace: 'exempt(name, args) || group === "intake" ? call.apply(target, args)',
      },
    ],
    detectedBy: ["alarmCoversAgenda", "everyRunIsFound"],
    kind: "without loops",
    within: 500,
  },
  {
    name: "the alarm is set after the commit",
    planted: "the alarm is set once the write has succeeded",
    why: "A write that fails needs no alarm. A process that dies in between has written and set none.",
    patches: [
      {
        file: "alarm/alarm-keeper.ts",
        find: "    if (!this.#isAhead(minAheadBounds)) await this.#arm();\n    this.#underWay++;\n    this.#startBeat();\n",
        replace: "    this.#underWay++;\n",
      },
    ],
    detectedBy: ["alarmCoversAgenda", "everyRunIsFound"],
    kind: "without loops",
    within: 500,
  },
  {
    name: "409 taken as armed",
    planted: "a name that is taken counts as an alarm that is set, also if its task was executed",
    why: "ALREADY_EXISTS reads like success. Cloud Tasks also gives it for a day after the task was executed.",
    patches: [{ file: "alarm/cloud-tasks.ts", find: "if (isAhead(at, serviceAt)) return;", replace: "return;" }],
    detectedBy: ["alarmCoversAgenda", "everyRunIsFound"],
    kind: "without loops",
    within: 500,
  },
  {
    name: "a claim without an alarm",
    planted: "claims set no alarm, and a sweep sets none for the end of a term: what is held is left to its holder",
    why: "Another process has it, so there is nothing to do. If that process dies, only the end of its term is on the agenda.",
    patches: [
      {
        file: "alarm/armed-store.ts",
        find: '  "claim.callbackSecret",\n',
        replace: '  "claim.callbackSecret",\n  "claim.find",\n',
      },
      {
        file: "host/serverless.ts",
        find: "agenda.map(({ dueInMs }) => (dueInMs > 0 ?",
        replace: "agenda.map(({ reactor, dueInMs }) => (dueInMs > 0 && reactor !== undefined ?",
      },
    ],
    detectedBy: ["alarmCoversAgenda", "everyRunIsFound"],
    kind: "without loops",
    within: 500,
  },
  {
    name: "answered before the leases are back",
    planted: "a request whose time is over is answered at once, and its runs are released afterwards",
    why: "The caller waits for the answer, not for the leases. But after it the host may freeze the process: what it holds is then left to expire.",
    patches: [
      {
        file: "host/on-demand.ts",
        find: "      : await surrender(Math.min(surrenderMs, bound.withinMs ?? surrenderMs));\n    const { lost, lagMs } = await done;",
        replace:
          '      : [(void surrender(Math.min(surrenderMs, bound.withinMs ?? surrenderMs)), "late")];\n    const { lost, lagMs } = surrendered.length > 0 ? { lost: 0, lagMs: 0 } : await done;',
      },
    ],
    detectedBy: ["answeredHoldsNothing"],
    kind: "without loops",
    within: 500,
  },
];
