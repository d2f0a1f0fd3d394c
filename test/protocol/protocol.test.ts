/**
 * The protocols are verified, and every broken variant breaks the expected invariant. A verified model must also have
 * a minimum number of states and take every relevant step at least once.
 */
import { describe, expect, test } from "vitest";
import { type EffectRules, effectModel } from "./effect-model.ts";
import { explore, type Model, only, type Variant, type Verdict } from "./explore.ts";
import { leaseModel } from "./lease-model.ts";
import {
  everything,
  handOver,
  LEASE_VARIANTS,
  namesakes,
  restored,
  restoredWithLostResponses,
} from "./lease-variants.ts";
import { type NoteRules, notesModel } from "./notes-model.ts";
import { slotModel } from "./slot-model.ts";
import { oneSlot, SLOT_VARIANTS, twoSlots } from "./slot-variants.ts";

function expectVerified(verdict: Verdict, minStates: number, steps: readonly string[]): void {
  expect(verdict.violated, verdict.trace).toBeNull();
  expect(verdict.states).toBeGreaterThanOrEqual(minStates);
  expect(steps.filter((step) => !verdict.fired.has(step))).toEqual([]);
}

/** The variant breaks `broken`, and its shortest trace ends with these steps. */
function expectBroken<S>(model: Model<S>, broken: string, ends: readonly string[]): void {
  const checked = broken === model.goal.name ? { ...model, invariants: {} } : only(model, broken);
  const verdict = explore(checked);
  expect(verdict.violated).toBe(broken);
  expect(verdict.path.slice(-ends.length), verdict.trace).toEqual(ends);
}

/** Each invariant is broken by some variant; otherwise it may be vacuous. */
function expectEachBroken<S>(model: Model<S>, variants: readonly { readonly breaks: string }[]): void {
  const broken = new Set(variants.map((variant) => variant.breaks));
  expect([...broken].sort()).toEqual([...Object.keys(model.invariants), model.goal.name].sort());
}

const EXECUTED = "upstream executes and responds";
const ABSENT = "worker 1 settles as absent";

describe("lease", () => {
  const fenced = ["expires a late holder", "appends, refused by the fence", "renews, refused"];

  test("holds with pauses, crashes, lost responses and a shared host name", () => {
    const lost = ["appends, the response is lost", "repeats the acquire", "is refused the lease"];
    const rest = ["expires a dead holder", "appends, refused by the predecessor"];
    expectVerified(explore(leaseModel(namesakes)), 17_000, [...fenced, ...lost, ...rest]);
  });

  test("holds with a release in mid-body and preemption by an operator", () => {
    const released = [
      "releases in mid-body",
      "ends its body",
      "dooms the holder",
      "bumps the token",
      "releases, refused",
    ];
    expectVerified(explore(leaseModel(handOver)), 9_000, [...fenced, ...released]);
  });

  test("holds with all of these at once", () => {
    const mixed = ["crashes and restarts", "repeats the acquire", "releases in mid-body", "bumps the token"];
    expectVerified(explore(leaseModel(everything)), 30_000, [...fenced, ...mixed]);
  });

  test("holds in a store restored from a backup", () => {
    const rewound = ["is backed up", "is restored", "appends, refused by the predecessor"];
    expectVerified(explore(leaseModel(restored)), 20_000, [...fenced, ...rewound]);
  });

  test("holds in a restored store with lost responses and a release", () => {
    const rewound = ["is restored", "repeats the acquire", "releases in mid-body", "appends, the response is lost"];
    expectVerified(explore(leaseModel(restoredWithLostResponses)), 38_000, [...fenced, ...rewound]);
  });

  for (const { name, rules, scenario, breaks, ends } of LEASE_VARIANTS) {
    test(`broken: ${name}`, () => expectBroken(leaseModel(scenario, rules), breaks, ends));
  }

  test("each invariant is broken by some variant", () => expectEachBroken(leaseModel(namesakes), LEASE_VARIANTS));
});

describe("notes", () => {
  test("holds when senders race with taking, parking, ending, crashes and takeovers", () => {
    const steps = ["parks the run", "takes a note", "ends the run", "is refused by the ended run"];
    const faults = [
      "expires a late holder",
      "expires a dead holder",
      "is refused by the fence",
      "crashes and restarts",
    ];
    expectVerified(explore(notesModel()), 2_500, [...steps, ...faults]);
  });

  const wakeUp = "a parked run with a pending note is due";
  const variants: readonly Variant<Partial<NoteRules>>[] = [
    {
      name: "parking checks for notes in an earlier transaction",
      rules: { parkCompares: "in an earlier transaction" },
      breaks: wakeUp,
      ends: ["worker 1 finds no note", "sender 1 sends a note", "worker 1 parks the run"],
    },
    {
      name: "parking checks in the same transaction, but the note uses its snapshot",
      rules: { noteCounts: "on its snapshot" },
      breaks: wakeUp,
      ends: ["worker 1 parks the run", "sender 1 sends a note"],
    },
    {
      // Lost before the run is parked: the worker has checked, and no sender is left.
      name: "a lost wake-up is never repaired",
      rules: { parkCompares: "in an earlier transaction" },
      breaks: "the run can end with a result for every sender",
      ends: ["worker 1 finds no note", "sender 1 sends a note", "sender 2 sends a note", "sender 3 sends a note"],
    },
    {
      name: "ending does not compare the notes",
      rules: { endCompares: false },
      breaks: "an ended run has taken every note",
      ends: ["worker 1 takes a note", "worker 1 ends the run"],
    },
    {
      name: "notes taken without a fence",
      rules: { fence: false },
      breaks: "each note is taken once and in order",
      ends: ["worker 2 acquires the run", "worker 1 takes a note", "worker 2 takes a note"],
    },
  ];

  for (const { name, rules, breaks, ends } of variants) {
    test(`broken: ${name}`, () => expectBroken(notesModel(rules), breaks, ends));
  }

  test("each invariant is broken by some variant", () => expectEachBroken(notesModel(), variants));
});

describe("slots of a queue", () => {
  const steps = ["admits a run", "parks the run", "sends a note", "ends the run", "cancels a queued run"];
  const faults = ["expires a late holder", "expires a dead holder", "takes over a run", "is refused by the fence"];

  test.each(["running", "started"] as const)("hold with a zombie and its successor, counts: %s", (counts) => {
    const handedOver = ["hands the run over", "continues a run"];
    expectVerified(explore(slotModel(oneSlot, { counts })), 1_000, [...steps, ...faults, ...handedOver]);
    expectVerified(explore(slotModel(twoSlots, { counts })), 1_000, [...steps, ...faults]);
  });

  for (const { name, rules, breaks, ends } of SLOT_VARIANTS) {
    test(`broken: ${name}`, () => expectBroken(slotModel(oneSlot, rules), breaks, ends));
  }

  test("each invariant is broken by some variant", () => expectEachBroken(slotModel(oneSlot), SLOT_VARIANTS));
});

describe("effect", () => {
  const common = [
    "takes over from a late holder",
    "is fenced, records evidence",
    "crashes and restarts",
    "executes late",
  ];
  const settled = ["confirms", "confirms by observation", "confirms by evidence", "is too late to call"];

  test("non_idempotent: at most one execution, an honest UNKNOWN, absence only when final", () => {
    const model = effectModel({}, { expiry: 3, crash: 1, lost: 2, exhausted: 0, resent: 0 });
    const inDoubt = [
      "finds a dispatch in doubt",
      "declares UNKNOWN",
      "stays in doubt about absence",
      "settles as absent",
    ];
    expectVerified(explore(model), 25_000, [...common, ...settled, ...inDoubt]);
  });

  test("non_idempotent: one that is proven absent is sent again, and still executed at most once", () => {
    const model = effectModel({}, { expiry: 2, crash: 1, lost: 1, exhausted: 0, resent: 1 });
    expectVerified(explore(model), 25_000, [
      ...common,
      ...settled,
      "settles as absent",
      "sends the absent effect again",
    ]);
  });

  test("broken: sent again after an absence that is not proven", () => {
    const ration = { expiry: 1, crash: 0, lost: 1, exhausted: 0, resent: 1 };
    const model = effectModel({ absence: "written after the delay" }, ration);
    expect(explore(only(model, once)).violated).toBe(once);
  });

  test("idempotent: retried under one key, and always confirmed in the end", () => {
    const retries = ["sends again", "dispatches again", "exhausts its retries", "puts the absent effect back"];
    expectVerified(explore(effectModel({ semantics: "idempotent" })), 15_000, [...common, ...settled, ...retries]);
  });

  const once = "the effect is executed at most once";
  const never = "FAILED(ABSENT) means never executed";
  const variants: readonly Variant<Partial<EffectRules>>[] = [
    {
      name: "blind retry",
      rules: { inDoubt: "blind retry" },
      breaks: once,
      ends: [
        "worker 1 sends again",
        "worker 1 checks its deadline",
        "worker 1 calls",
        EXECUTED,
        "upstream executes late",
      ],
    },
    {
      name: "an expired dispatch goes back to PENDING",
      rules: { expiredDispatched: "back to PENDING" },
      breaks: once,
      ends: ["worker 2 checks its deadline", "worker 2 calls", EXECUTED, EXECUTED],
    },
    {
      name: "an idempotency key of the attempt instead of the decision",
      rules: { semantics: "idempotent", key: "of the attempt" },
      breaks: once,
      ends: ["worker 1 calls", EXECUTED, "upstream executes late"],
    },
    {
      name: "called before the intent is committed",
      rules: { intent: "after the call" },
      breaks: "intent before execution",
      ends: ["worker 1 calls before its intent", "worker 1 calls", EXECUTED],
    },
    {
      name: "an effect in doubt counts as done",
      rules: { inDoubt: "counts as done" },
      breaks: "CONFIRMED means executed",
      ends: ["worker 1 is too late to call", "worker 1 assumes success"],
    },
    {
      name: "absence taken as final at once",
      rules: { absence: "at once" },
      breaks: never,
      ends: ["worker 1 observes absence", "worker 1 settles as absent", "upstream executes late"],
    },
    {
      name: "absence seen before the settle delay, written after it",
      rules: { absence: "written after the delay" },
      breaks: never,
      ends: ["upstream executes late", "clock passes the send deadline", "clock passes the settle delay", ABSENT],
    },
    {
      name: "a paused sender does not check its deadline",
      rules: { senderChecksDeadline: false },
      breaks: never,
      ends: ["worker 1 calls", "worker 2 observes absence", "worker 2 settles as absent", EXECUTED],
    },
    {
      name: "settlement without a fence",
      rules: { settlementFenced: false },
      breaks: "a verdict is final",
      ends: ["worker 2 settles as absent", "worker 1 declares UNKNOWN"],
    },
    {
      name: "absence is never final",
      rules: { absence: "never" },
      breaks: "the effect can reach its verdict",
      ends: ["worker 1 dispatches", "worker 1 crashes and restarts"],
    },
  ];

  for (const { name, rules, breaks, ends } of variants) {
    test(`broken: ${name}`, () => expectBroken(effectModel(rules), breaks, ends));
  }

  test("each invariant is broken by some variant", () => expectEachBroken(effectModel(), variants));
});
