/**
 * One effect as a model: intent, dispatch, execution by the upstream, settlement, and crashes, pauses and lost leases in
 * between. The upstream counts its executions itself: "once" is checked there, never in the journal.
 *
 * Time is a window per attempt: open (the sender may still send), closed (its send deadline has passed), settled (the
 * settle delay has passed, too). The only assumption about time is that the delay is long enough: it does not end while
 * a sender is between its last check of the clock and its call, or while a request is on the wire.
 */
import type { Model, Step } from "./explore.ts";
import { spend } from "./explore.ts";

export interface EffectRules {
  readonly semantics: "idempotent" | "non_idempotent";
  readonly intent: "before the call" | "after the call";
  /** What happens to an attempt in doubt. Honest: UNKNOWN, or for an idempotent effect a retry under its key. */
  readonly inDoubt: "honest" | "blind retry" | "counts as done";
  readonly expiredDispatched: "by semantics" | "back to PENDING";
  /** When `absent` is a verdict: the window must have settled before the observation, or wrongly before the write. */
  readonly absence: "observed after the delay" | "written after the delay" | "at once" | "never";
  readonly senderChecksDeadline: boolean;
  readonly key: "of the decision" | "of the attempt";
  readonly settlementFenced: boolean;
}

const CORRECT: EffectRules = {
  semantics: "non_idempotent",
  intent: "before the call",
  inDoubt: "honest",
  expiredDispatched: "by semantics",
  absence: "observed after the delay",
  senderChecksDeadline: true,
  key: "of the decision",
  settlementFenced: true,
};

type Status = "none" | "PENDING" | "DISPATCHED" | "UNKNOWN" | "CONFIRMED" | "FAILED(ABSENT)";

interface Ration {
  readonly expiry: number;
  readonly crash: number;
  readonly lost: number;
  /** How often an idempotent effect exhausts its retries, so that the reconciler has to observe it. */
  readonly exhausted: number;
  /** How often an effect that is proven absent is sent again. */
  readonly resent: number;
}

interface Worker {
  /** cleared: it has checked the deadline and will call. saw …: it has observed and will write. */
  readonly phase:
    | "idle"
    | "driving"
    | "dispatched"
    | "cleared"
    | "waiting"
    | "answered"
    | "in doubt"
    | "saw the effect"
    | "saw absence"
    | "saw final absence";
  readonly token: number;
  /** The send deadline of its own attempt has passed. */
  readonly late: boolean;
  /** Its requests on the wire; they survive a crash. */
  readonly out: number;
}

export interface EffectState {
  readonly status: Status;
  readonly token: number;
  readonly window: "open" | "closed" | "settled";
  readonly evidence: boolean;
  readonly executions: number;
  readonly workers: readonly Worker[];
  readonly left: Ration;
  /** Ghosts: the first verdict ever written, and whether an execution preceded the durable intent. */
  readonly verdict: Status;
  readonly early: boolean;
}

const RATION: Ration = { expiry: 1, crash: 1, lost: 1, exhausted: 1, resent: 0 };

const isVerdict = (status: Status): boolean => status === "CONFIRMED" || status === "FAILED(ABSENT)";

const INVARIANTS: Readonly<Record<string, (s: EffectState) => boolean>> = {
  "the effect is executed at most once": (s) => s.executions <= 1,
  "intent before execution": (s) => !s.early,
  "CONFIRMED means executed": (s) => s.status !== "CONFIRMED" || s.executions > 0,
  "FAILED(ABSENT) means never executed": (s) => s.status !== "FAILED(ABSENT)" || s.executions === 0,
  "a verdict is final": (s) => s.verdict === "none" || s.status === s.verdict,
};

export function effectModel(overrides: Partial<EffectRules> = {}, ration: Ration = RATION): Model<EffectState> {
  const rules: EffectRules = { ...CORRECT, ...overrides };
  const idempotent = rules.semantics === "idempotent";
  const resends = idempotent || rules.inDoubt === "blind retry";

  function workerSteps(s: EffectState, i: number, out: Step<EffectState>[]): void {
    const w = s.workers[i]!;
    const add = (
      does: string,
      phase: Worker["phase"],
      to: Partial<EffectState> = {},
      cost?: keyof Ration,
      change: Partial<Worker> = {},
    ): void => {
      const left = spend(s.left, cost);
      if (left === null) return;
      const token = phase === "idle" ? 0 : w.token;
      const verdict = s.verdict === "none" && to.status !== undefined && isVerdict(to.status) ? to.status : s.verdict;
      const workers = s.workers.with(i, { ...w, token, phase, ...change });
      out.push({ by: `worker ${i + 1}`, does, fault: cost !== undefined, to: { ...s, verdict, ...to, workers, left } });
    };
    const toUnknown = (does: string, cost?: keyof Ration): void => {
      // The handoff to the item lease: the record with UNKNOWN ends the previous authority.
      add(does, "idle", { status: "UNKNOWN", token: s.token + 1 }, cost);
    };
    const dispatch = (does: string): void =>
      add(does, "dispatched", { status: "DISPATCHED", window: "open" }, undefined, { late: false });

    const drive = (): void => {
      if (s.status === "none" && rules.intent === "before the call")
        add("writes the intent", "driving", { status: "PENDING" });
      else if (s.status === "none") add("calls before its intent", "cleared");
      else if (s.status === "PENDING") dispatch("dispatches");
      else if (s.status === "DISPATCHED" && rules.expiredDispatched === "back to PENDING") {
        add("puts the expired dispatch back", "driving", { status: "PENDING" });
      } else if (s.status === "DISPATCHED" && resends) dispatch("dispatches again");
      else if (s.status === "DISPATCHED") toUnknown("finds a dispatch in doubt");
      else if (s.evidence) add("confirms by evidence", "idle", { status: "CONFIRMED" });
      else if (s.executions > 0) add("observes the effect", "saw the effect");
      else add("observes absence", s.window === "settled" ? "saw final absence" : "saw absence");
    };

    const settleAbsence = (): void => {
      const final =
        rules.absence === "at once" ||
        (rules.absence === "written after the delay" && s.window === "settled") ||
        (rules.absence === "observed after the delay" && w.phase === "saw final absence");
      if (idempotent) add("puts the absent effect back", "driving", { status: "PENDING" });
      else if (final) {
        add("settles as absent", "idle", { status: "FAILED(ABSENT)" });
        add("sends the absent effect again", "driving", { status: "PENDING" }, "resent");
      } else add("stays in doubt about absence", "driving");
    };

    const underFence = (): void => {
      if (w.phase === "driving") drive();
      if (w.phase === "answered") add("confirms", "idle", { status: "CONFIRMED" });
      if (w.phase === "saw the effect") add("confirms by observation", "idle", { status: "CONFIRMED" });
      if (w.phase === "saw absence" || w.phase === "saw final absence") settleAbsence();
      if (w.phase !== "in doubt") return;
      if (rules.inDoubt === "counts as done") add("assumes success", "idle", { status: "CONFIRMED" });
      else if (resends) dispatch("sends again");
      else toUnknown("declares UNKNOWN");
      if (idempotent) toUnknown("exhausts its retries", "exhausted");
    };

    if (w.phase === "idle") {
      if (isVerdict(s.status)) return;
      const late = s.workers.some((x) => x.phase !== "idle" && x.token === s.token);
      const token = s.token + 1;
      if (late) add("takes over from a late holder", "driving", { token }, "expiry", { token });
      else add("acquires", "driving", { token }, undefined, { token });
      return;
    }
    add("crashes and restarts", "idle", {}, "crash");
    if (w.phase === "dispatched") {
      const mayCall = (s.window === "open" && !w.late) || !rules.senderChecksDeadline;
      add(mayCall ? "checks its deadline" : "is too late to call", mayCall ? "cleared" : "in doubt");
    } else if (w.phase === "cleared") {
      add("calls", "waiting", {}, undefined, { out: w.out + 1 });
    } else if (w.phase === "waiting") {
      add("times out", "in doubt", {}, w.out === 0 ? undefined : "lost");
    } else if (w.token === s.token || !rules.settlementFenced) {
      underFence();
    } else if (w.phase === "answered") {
      add("is fenced, records evidence", "idle", { evidence: true });
    } else {
      add("is fenced", "idle");
    }
  }

  function otherSteps(s: EffectState, out: Step<EffectState>[]): void {
    const add = (by: string, does: string, to: Partial<EffectState>, cost?: keyof Ration): void => {
      const left = spend(s.left, cost);
      if (left === null) return;
      out.push({ by, does, fault: cost !== undefined, to: { ...s, ...to, left } });
    };
    const deduped = idempotent && rules.key === "of the decision" && s.executions > 0;
    const executed = { executions: deduped ? s.executions : s.executions + 1, early: s.early || s.status === "none" };
    s.workers.forEach((w, i) => {
      if (w.out === 0) return;
      const received = (phase: Worker["phase"]): Partial<EffectState> => ({
        workers: s.workers.with(i, { ...w, phase, out: w.out - 1 }),
      });
      add("wire", "loses the request", received(w.phase), "lost");
      if (w.phase === "waiting") {
        add("upstream", "executes and responds", { ...executed, ...received("answered") });
        add("upstream", "executes, the response is lost", { ...executed, ...received("waiting") }, "lost");
      } else add("upstream", "executes late", { ...executed, ...received(w.phase) });
    });
    const dispatched = s.status === "DISPATCHED" || s.status === "UNKNOWN";
    if (dispatched && s.window === "open") {
      const workers = s.workers.map((w) => (w.phase === "dispatched" ? { ...w, late: true } : w));
      add("clock", "passes the send deadline", { window: "closed", workers });
    }
    const quiet = s.workers.every((w) => w.out === 0 && w.phase !== "cleared");
    if (dispatched && s.window === "closed" && quiet) add("clock", "passes the settle delay", { window: "settled" });
  }

  return {
    initial: {
      status: "none",
      token: 0,
      window: "open",
      evidence: false,
      executions: 0,
      workers: Array.from({ length: 3 }, () => ({ phase: "idle", token: 0, late: false, out: 0 })),
      left: ration,
      verdict: "none",
      early: false,
    },
    steps(s) {
      const out: Step<EffectState>[] = [];
      for (let i = 0; i < s.workers.length; i++) workerSteps(s, i, out);
      otherSteps(s, out);
      return out;
    },
    key: (s) => {
      const workers = s.workers.map((w) => `${w.phase},${w.token},${w.late},${w.out}`).sort();
      const row = [s.status, s.token, s.window, s.evidence, s.executions, s.verdict, s.early];
      return `${row.join(",")}|${Object.values(s.left)}|${workers.join("|")}`;
    },
    show: (s) => {
      const workers = s.workers
        .map((w, i) => (w.phase === "idle" ? "" : `worker ${i + 1} ${w.phase} t${w.token}`))
        .filter((text) => text !== "");
      const wire = s.workers.reduce((n, w) => n + w.out, 0);
      const row = `${s.status} t${s.token}, window ${s.window}, executions ${s.executions}, wire ${wire}`;
      return [row + (s.evidence ? ", evidence" : ""), ...workers].join(" | ");
    },
    invariants: INVARIANTS,
    goal: {
      name: "the effect can reach its verdict",
      reached: (s) => s.status === "CONFIRMED" || (!idempotent && s.status === "FAILED(ABSENT)"),
    },
  };
}
