/**
 * Notes and parking as a model: many senders put notes into a run's inbox without a lease. The run's holder takes them,
 * and parks or ends the run when none is left. A wake-up is lost if a run is parked with a pending note and is not
 * marked as due: no worker would ever acquire it again.
 */
import type { Model, Step } from "./explore.ts";
import { spend } from "./explore.ts";

export interface NoteRules {
  /** "in an earlier transaction": check for pending notes, then park despite notes that arrived in between. */
  readonly parkCompares: "in the same transaction" | "in an earlier transaction";
  /** "on its snapshot": insert a row and use the status as read, as with a NOT EXISTS check under MVCC. */
  readonly noteCounts: "on the run's row" | "on its snapshot";
  readonly endCompares: boolean;
  readonly fence: boolean;
}

const CORRECT: NoteRules = {
  parkCompares: "in the same transaction",
  noteCounts: "on the run's row",
  endCompares: true,
  fence: true,
};

interface Ration {
  readonly expiry: number;
  readonly crash: number;
}

interface Sender {
  readonly phase: "waiting" | "read" | "answered";
  readonly sawParked: boolean;
}

interface Worker {
  readonly phase: "idle" | "driving" | "checked";
  readonly token: number;
  /** The number of notes that it has taken. */
  readonly taken: number;
}

export interface NoteState {
  readonly status: "running" | "parked" | "ended";
  readonly token: number;
  readonly held: boolean;
  readonly due: boolean;
  readonly notes: number;
  readonly taken: number;
  /** The numbers of the notes, in the order of the journal. */
  readonly journal: readonly number[];
  readonly workers: readonly Worker[];
  readonly senders: readonly Sender[];
  readonly left: Ration;
}

const IDLE: Worker = { phase: "idle", token: 0, taken: 0 };
/** The run ends after two notes; the third sender races with the end. */
const EXPECTED = 2;
const SENDERS = 3;

const INVARIANTS: Readonly<Record<string, (s: NoteState) => boolean>> = {
  "a parked run with a pending note is due": (s) => s.status !== "parked" || s.notes === s.taken || s.due,
  "an ended run has taken every note": (s) => s.status !== "ended" || s.notes === s.taken,
  "each note is taken once and in order": (s) => s.journal.every((note, i) => note === i + 1),
};

export function notesModel(overrides: Partial<NoteRules> = {}): Model<NoteState> {
  const rules: NoteRules = { ...CORRECT, ...overrides };

  function senderSteps(s: NoteState, i: number, out: Step<NoteState>[]): void {
    const sender = s.senders[i]!;
    const add = (does: string, phase: Sender["phase"], sawParked: boolean, to: Partial<NoteState> = {}): void => {
      const senders = s.senders.with(i, { phase, sawParked });
      out.push({ by: `sender ${i + 1}`, does, fault: false, to: { ...s, ...to, senders } });
    };
    const note = (parked: boolean): void =>
      add("sends a note", "answered", false, { notes: s.notes + 1, due: s.due || parked });
    if (sender.phase === "read") note(sender.sawParked);
    if (sender.phase !== "waiting") return;
    if (s.status === "ended") add("is refused by the ended run", "answered", false);
    else if (rules.noteCounts === "on the run's row") note(s.status === "parked");
    else add("reads the run", "read", s.status === "parked");
  }

  function workerSteps(s: NoteState, i: number, out: Step<NoteState>[]): void {
    const w = s.workers[i]!;
    const add = (does: string, worker: Worker, to: Partial<NoteState> = {}, cost?: keyof Ration): void => {
      const left = spend(s.left, cost);
      if (left === null) return;
      const workers = s.workers.with(i, worker);
      out.push({ by: `worker ${i + 1}`, does, fault: cost !== undefined, to: { ...s, ...to, workers, left } });
    };
    if (w.phase === "idle") {
      const token = s.token + 1;
      const found = s.status === "parked" ? s.due : s.status === "running" && !s.held;
      const term = { status: "running", token, held: true, due: false } as const;
      if (found) add("acquires the run", { phase: "driving", token, taken: s.taken }, term);
      return;
    }
    add("crashes and restarts", IDLE, {}, "crash");
    if (rules.fence && w.token !== s.token) {
      add("is refused by the fence", IDLE);
      return;
    }
    const released = { held: false, due: false, token: s.token + 1 };
    const drained = s.notes === w.taken;
    if (w.phase === "checked") add("parks the run", IDLE, { ...released, status: "parked" });
    if (w.phase !== "driving") return;
    if (s.notes > w.taken) {
      const taken = w.taken + 1;
      add("takes a note", { ...w, taken }, { taken, journal: [...s.journal, taken] });
    }
    if (w.taken >= EXPECTED && (drained || !rules.endCompares))
      add("ends the run", IDLE, { ...released, status: "ended" });
    if (w.taken >= EXPECTED || !drained) return;
    if (rules.parkCompares === "in the same transaction") add("parks the run", IDLE, { ...released, status: "parked" });
    else add("finds no note", { ...w, phase: "checked" });
  }

  function clockSteps(s: NoteState, out: Step<NoteState>[]): void {
    if (!s.held) return;
    const alive = s.workers.some((w) => w.phase !== "idle" && w.token === s.token);
    const left = spend(s.left, alive ? "expiry" : undefined);
    if (left === null) return;
    const does = alive ? "expires a late holder" : "expires a dead holder";
    out.push({ by: "clock", does, fault: alive, to: { ...s, held: false, left } });
  }

  return {
    initial: {
      status: "running",
      token: 0,
      held: false,
      due: false,
      notes: 0,
      taken: 0,
      journal: [],
      workers: [IDLE, IDLE],
      senders: Array.from({ length: SENDERS }, () => ({ phase: "waiting", sawParked: false })),
      left: { expiry: 2, crash: 1 },
    },
    steps(s) {
      const out: Step<NoteState>[] = [];
      for (let i = 0; i < s.senders.length; i++) senderSteps(s, i, out);
      for (let i = 0; i < s.workers.length; i++) workerSteps(s, i, out);
      clockSteps(s, out);
      return out;
    },
    // Senders are symmetric, and so are workers.
    key: (s) => {
      const senders = s.senders.map((x) => `${x.phase}${x.sawParked}`).sort();
      const workers = s.workers.map((w) => `${w.phase}${w.token},${w.taken}`).sort();
      const row = [s.status, s.token, s.held, s.due, s.notes, s.taken, s.journal, s.left.expiry, s.left.crash];
      return `${row.join(",")}|${workers.join("|")}|${senders.join("|")}`;
    },
    show: (s) => {
      const busy = s.workers.map((w, i) => `worker ${i + 1} ${w.phase} t${w.token}`).filter((x) => !x.includes("idle"));
      const row = `${s.status}${s.due ? " due" : ""} t${s.token}, notes ${s.notes}, taken ${s.taken}`;
      return [row, `journal [${s.journal.join(" ")}]`, ...busy].join(" | ");
    },
    invariants: INVARIANTS,
    goal: {
      name: "the run can end with a result for every sender",
      reached: (s) => s.status === "ended" && s.senders.every((x) => x.phase === "answered"),
    },
  };
}
