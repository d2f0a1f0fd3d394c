/**
 * The state of the lease model: the row, the journal, the workers, and their invariants.
 *
 * Ghosts are facts that the real store does not have: the term (the true holder), and marks on the row and on records
 * about how they were written. Only invariants read them, not workers or statements. The clock reads the term to
 * distinguish a late holder from a dead one.
 */

/** Rationed faults, so that the model stays finite. `expiry` is the expiry of a holder that is alive but late. */
export interface Ration {
  readonly expiry: number;
  readonly crash: number;
  readonly lost: number;
  readonly preempt: number;
  readonly release: number;
  readonly rewind: number;
}

export interface Scenario {
  /** A worker's label is its name without the digits: "a1" and "a2" are two processes on a host called "a". */
  readonly workers: readonly string[];
  readonly records: number;
  readonly ration: Ration;
}

export interface Row {
  readonly token: number;
  readonly nonce: number;
  readonly owner: string;
  readonly expired: boolean;
  readonly doomed: boolean;
  /** Ghosts: the current term (0: none), whether another worker revived it, whether it started on a live row. */
  readonly term: number;
  readonly revived: boolean;
  readonly stolen: boolean;
}

export interface Entry {
  readonly seq: number;
  readonly step: number;
  readonly token: number;
  /** Ghosts: the row's token at commit, whether the writer's term was current, whether the row was doomed. */
  readonly rowToken: number;
  readonly byHolder: boolean;
  readonly doomed: boolean;
}

export interface Worker {
  /** asking: the acquire got no response. checked: fence compared, not yet written. released: the body still runs. */
  readonly phase: "idle" | "asking" | "locked out" | "holding" | "checked" | "released";
  readonly token: number;
  readonly nonce: number;
  readonly term: number;
  /** The last seq it knows: the predecessor of its next append. */
  readonly head: number;
}

export interface StoredState {
  readonly row: Row;
  readonly journal: readonly Entry[];
}

export interface State extends StoredState {
  readonly workers: readonly Worker[];
  readonly backup: StoredState | null;
  readonly left: Ration;
}

export const IDLE: Worker = { phase: "idle", token: 0, nonce: 0, term: 0, head: 0 };
export const FREE: Row = {
  token: 0,
  nonce: 0,
  owner: "",
  expired: true,
  doomed: false,
  term: 0,
  revived: false,
  stolen: false,
};

export function labelOf(name: string): string {
  return name.replace(/\d/g, "");
}

/** Workers with the same label behave alike: sorting them merges symmetric states. */
export function keyOf(scenario: Scenario): (s: State) => string {
  const labels = scenario.workers.map(labelOf);
  const flag = (b: boolean): string => (b ? "1" : "0");
  const row = (r: Row): string =>
    `${r.token},${r.nonce},${r.owner},${r.term},${flag(r.expired)}${flag(r.doomed)}${flag(r.revived)}${flag(r.stolen)}`;
  const entry = (e: Entry): string =>
    `${e.seq},${e.step},${e.token},${e.rowToken},${flag(e.byHolder)}${flag(e.doomed)}`;
  const stored = (x: StoredState): string => `${row(x.row)}/${x.journal.map(entry).join(";")}`;
  return (s) => {
    const workers = s.workers.map((w, i) =>
      w.phase === "idle" ? labels[i] : `${labels[i]}${w.phase},${w.token},${w.nonce},${w.term},${w.head}`,
    );
    const { expiry, crash, lost, preempt, release, rewind } = s.left;
    const left = `${expiry},${crash},${lost},${preempt},${release},${rewind}`;
    return `${stored(s)}|${workers.sort().join("|")}|${left}|${s.backup === null ? "" : stored(s.backup)}`;
  };
}

export function showOf(scenario: Scenario): (s: State) => string {
  return ({ row, journal, workers, backup }) => {
    const state = [row.owner || "no owner", row.expired ? "expired" : "live", ...(row.doomed ? ["doomed"] : [])];
    const entries = journal.map((e) => `${e.seq}=step${e.step}/t${e.token}`).join(" ");
    const busy = workers
      .map((w, i) =>
        w.phase === "idle" ? "" : `${scenario.workers[i]} ${w.phase} t${w.token}#${w.nonce} head ${w.head}`,
      )
      .filter((text) => text !== "");
    const saved = backup === null ? [] : [`backup t${backup.row.token} head ${backup.journal.length}`];
    return [`row t${row.token}#${row.nonce} ${state.join(" ")}`, `journal [${entries}]`, ...busy, ...saved].join(" | ");
  };
}

/** Whether two different terms, of a worker or of the row, would both pass a fence on token and nonce. */
function shareFence(s: State): boolean {
  const terms = [s.row, ...s.workers.filter((w) => w.token > 0)].filter((x) => x.term > 0);
  return terms.some((x) => terms.some((y) => x.term !== y.term && x.token === y.token && x.nonce === y.nonce));
}

export const INVARIANTS: Readonly<Record<string, (s: State) => boolean>> = {
  "seq is dense": (s) => s.journal.every((e, i) => e.seq === i + 1),
  "a step is recorded at most once": (s) => new Set(s.journal.map((e) => e.step)).size === s.journal.length,
  "no step is skipped": (s) => s.journal.every((e) => s.journal.some((f) => f.step === e.step - 1) || e.step === 1),
  "tokens never fall along seq": (s) => s.journal.every((e, i) => i === 0 || s.journal[i - 1]!.token <= e.token),
  "a record carries the token current at its commit": (s) => s.journal.every((e) => e.token === e.rowToken),
  "only the holder writes": (s) => s.journal.every((e) => e.byHolder),
  "nothing is written under a doomed term": (s) => s.journal.every((e) => !e.doomed),
  "two terms never share token and nonce": (s) => !shareFence(s),
  "only the holder keeps its lease alive": (s) => s.row.expired || !s.row.revived,
  "no takeover before expiry": (s) => !s.row.stolen,
  "no worker is locked out by its own term": (s) =>
    !s.workers.some((w) => w.phase === "locked out" && w.term === s.row.term && !s.row.expired),
};
