/**
 * The protocols verify, and every broken variant fails by the name of what it breaks. A verified model must also have
 * been busy: a least number of states, and every step that matters taken at least once.
 */
import { describe, expect, test } from "vitest";
import { type EffectRules, effectModel } from "./effect-model.ts";
import { explore, type Model, only, type Variant, type Verdict } from "./explore.ts";
import { leaseModel } from "./lease-model.ts";
import { everything, handOver, LEASE_VARIANTS, namesakes, restored, restoredWithDoubt } from "./lease-variants.ts";
import { type NoteRules, notesModel } from "./notes-model.ts";

function expectVerified(verdict: Verdict, leastStates: number, steps: readonly string[]): void {
  expect(verdict.violated, verdict.trace).toBeNull();
  expect(verdict.states).toBeGreaterThanOrEqual(leastStates);
  expect(steps.filter((step) => !verdict.fired.has(step))).toEqual([]);
}

/** The variant breaks `broken`, and its shortest trace ends with these steps. */
function expectBroken<S>(model: Model<S>, broken: string, ends: readonly string[]): void {
  const asked = broken === model.goal.name ? { ...model, invariants: {} } : only(model, broken);
  const verdict = explore(asked);
  expect(verdict.violated).toBe(broken);
  expect(verdict.path.slice(-ends.length), verdict.trace).toEqual(ends);
}

/** An invariant that no variant breaks may be true of everything. */
function expectEachBroken<S>(model: Model<S>, variants: readonly { readonly breaks: string }[]): void {
  const broken = new Set(variants.map((variant) => variant.breaks));
  expect([...broken].sort()).toEqual([...Object.keys(model.invariants), model.goal.name].sort());
}

const ANSWERED = "world acts and answers";
const ABSENT = "worker 1 settles as absent";

describe("lease", () => {
  const fenced = ["expires a late holder", "appends, refused by the fence", "renews, refused"];

  test("pauses, crashes, lost answers and a shared host name", () => {
    const doubt = ["appends, the answer is lost", "repeats the acquire", "is refused the lease"];
    const rest = ["expires a dead holder", "appends, refused by the predecessor"];
    expectVerified(explore(leaseModel(namesakes)), 17_000, [...fenced, ...doubt, ...rest]);
  });

  test("release in mid-body and pre-emption by an operator", () => {
    const given = ["releases in mid-body", "ends its body", "dooms the holder", "bumps the token", "releases, refused"];
    expectVerified(explore(leaseModel(handOver)), 9_000, [...fenced, ...given]);
  });

  test("all of these at once", () => {
    const mixed = ["crashes and restarts", "repeats the acquire", "releases in mid-body", "bumps the token"];
    expectVerified(explore(leaseModel(everything)), 30_000, [...fenced, ...mixed]);
  });

  test("a store restored from a backup", () => {
    const rewound = ["is backed up", "is restored", "appends, refused by the predecessor"];
    expectVerified(explore(leaseModel(restored)), 20_000, [...fenced, ...rewound]);
  });

  test("a restored store, with lost answers and a release", () => {
    const rewound = ["is restored", "repeats the acquire", "releases in mid-body", "appends, the answer is lost"];
    expectVerified(explore(leaseModel(restoredWithDoubt)), 38_000, [...fenced, ...rewound]);
  });

  for (const { name, rules, scenario, breaks, ends } of LEASE_VARIANTS) {
    test(`broken: ${name}`, () => expectBroken(leaseModel(scenario, rules), breaks, ends));
  }

  test("each invariant is broken by some variant", () => expectEachBroken(leaseModel(namesakes), LEASE_VARIANTS));
});

describe("notes", () => {
  test("senders race with taking, parking, ending, crashes and takeovers", () => {
    const steps = ["parks the run", "takes a note", "ends the run", "is refused by the ended run"];
    const faults = [
      "expires a late holder",
      "expires a dead holder",
      "is refused by the fence",
      "crashes and restarts",
    ];
    expectVerified(explore(notesModel()), 2_500, [...steps, ...faults]);
  });

  const wakeUp = "a parked run with a waiting note is due";
  const variants: readonly Variant<Partial<NoteRules>>[] = [
    {
      name: "parking looks for notes in an earlier transaction",
      rules: { parkCompares: "in an earlier transaction" },
      breaks: wakeUp,
      ends: ["worker 1 finds no note", "sender 1 leaves a note", "worker 1 parks the run"],
    },
    {
      name: "parking looks in the same transaction, but the note judges by its snapshot",
      rules: { noteCounts: "on its snapshot" },
      breaks: wakeUp,
      ends: ["worker 1 parks the run", "sender 1 leaves a note"],
    },
    {
      // Lost before the run is parked: the worker has looked, and nobody is left to send another note.
      name: "a lost wake-up is never made good",
      rules: { parkCompares: "in an earlier transaction" },
      breaks: "the run can end with every sender answered",
      ends: ["worker 1 finds no note", "sender 1 leaves a note", "sender 2 leaves a note", "sender 3 leaves a note"],
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

describe("effect", () => {
  const common = [
    "takes over from a late holder",
    "is fenced, leaves evidence",
    "crashes and restarts",
    "acts unheard",
  ];
  const settled = ["confirms", "confirms by observation", "confirms by evidence", "is too late to call"];

  test("non_idempotent: at most one act, an honest UNKNOWN, absence only when it is final", () => {
    const model = effectModel({}, { expiry: 3, crash: 1, lost: 2, exhausted: 0 });
    const doubt = [
      "finds a dispatch in doubt",
      "declares UNKNOWN",
      "stays in doubt about absence",
      "settles as absent",
    ];
    expectVerified(explore(model), 25_000, [...common, ...settled, ...doubt]);
  });

  test("idempotent: sent again under one key, and always confirmed in the end", () => {
    const again = ["sends again", "dispatches again", "runs out of retries", "puts the absent effect back"];
    expectVerified(explore(effectModel({ semantics: "idempotent" })), 15_000, [...common, ...settled, ...again]);
  });

  const once = "the world acts at most once";
  const never = "FAILED(ABSENT) means never";
  const variants: readonly Variant<Partial<EffectRules>>[] = [
    {
      name: "blind retry",
      rules: { doubt: "blind retry" },
      breaks: once,
      ends: [
        "worker 1 sends again",
        "worker 1 looks at its deadline",
        "worker 1 calls",
        ANSWERED,
        "world acts unheard",
      ],
    },
    {
      name: "an expired dispatch goes back to PENDING",
      rules: { expiredDispatched: "back to PENDING" },
      breaks: once,
      ends: ["worker 2 looks at its deadline", "worker 2 calls", ANSWERED, ANSWERED],
    },
    {
      name: "an idempotency key of the attempt instead of the decision",
      rules: { semantics: "idempotent", key: "of the attempt" },
      breaks: once,
      ends: ["worker 1 calls", ANSWERED, "world acts unheard"],
    },
    {
      name: "called before the intent is committed",
      rules: { intent: "after the call" },
      breaks: "intent before act",
      ends: ["worker 1 calls before its intent", "worker 1 calls", ANSWERED],
    },
    {
      name: "doubt counts as done",
      rules: { doubt: "counts as done" },
      breaks: "CONFIRMED is true in the world",
      ends: ["worker 1 is too late to call", "worker 1 takes doubt for success"],
    },
    {
      name: "absence taken as final at once",
      rules: { absence: "at once" },
      breaks: never,
      ends: ["worker 1 observes absence", "worker 1 settles as absent", "world acts unheard"],
    },
    {
      name: "absence seen before the settle delay, written after it",
      rules: { absence: "written after the delay" },
      breaks: never,
      ends: ["world acts unheard", "clock passes the send deadline", "clock passes the settle delay", ABSENT],
    },
    {
      name: "a paused sender does not look at its deadline",
      rules: { senderLooksAtDeadline: false },
      breaks: never,
      ends: ["worker 1 calls", "worker 2 observes absence", "worker 2 settles as absent", ANSWERED],
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
