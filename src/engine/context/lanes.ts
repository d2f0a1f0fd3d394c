import { TapeError } from "../../model/errors.ts";
import { laneOf, laneRoom } from "../../model/record-context.ts";
import type { History } from "../replay/history.ts";

/** A branch of a workflow with positions of its own: what it asks for is found again whatever the others do meanwhile. */
export class Lane {
  /** 0: the workflow itself. */
  readonly number: number;
  /** The names of the lanes that it is in, and its own. */
  readonly path: string;
  /** Whose it is. */
  readonly of: object;
  /** The next position. */
  next: number;
  /** The kind of what was asked for, in order. */
  readonly kinds: (string | undefined)[] = [];
  /** How often chance was asked for. */
  samples = 0;
  /** A branch is in it: nobody else may be. */
  busy = false;
  /** The journal knows its number. */
  known: boolean;

  constructor(of: object, number: number, path: string, known: boolean) {
    this.of = of;
    this.number = number;
    this.path = path;
    this.known = known;
    this.next = number * laneRoom;
  }
}

/** Longer ones would be a mistake, and make a record that nobody reads. */
const maxPathChars = 512;

/** The lanes of one drive. A lane's number is drawn when it is first entered, and found in the journal from then on. */
export class Lanes {
  readonly root: Lane;
  readonly #history: History;
  /** undefined: the code has entered none but its own, as most never do. */
  #entered: { readonly byPath: Map<string, Lane>; readonly byNumber: Map<number, Lane>; last: number } | undefined;

  constructor(of: object, history: History) {
    this.root = new Lane(of, 0, "", true);
    this.#history = history;
  }

  get used(): boolean {
    return this.#entered !== undefined;
  }

  /** The lane of this name within another. */
  within(parent: Lane, name: string): Lane {
    if (typeof name !== "string" || name === "") throw new TapeError("TAPE_BAD_INPUT", "a lane needs a name");
    const path = `${parent.path}/${name.replace(/[%/]/g, (mark) => (mark === "/" ? "%2F" : "%25"))}`;
    if (path.length > maxPathChars) {
      throw new TapeError(
        "TAPE_BAD_INPUT",
        `the name of a lane, with those it is in, has at most ${maxPathChars} characters`,
      );
    }
    this.#entered ??= { byPath: new Map(), byNumber: new Map([[0, this.root]]), last: this.#lastKnown() };
    const { byPath, byNumber } = this.#entered;
    const found = byPath.get(path);
    if (found !== undefined) return found;
    const known = this.#history.lanes.get(path);
    const lane = new Lane(this.root.of, known ?? ++this.#entered.last, path, known !== undefined);
    byPath.set(path, lane);
    byNumber.set(lane.number, lane);
    return lane;
  }

  #lastKnown(): number {
    let last = 0;
    for (const number of this.#history.lanes.values()) if (number > last) last = number;
    return last;
  }

  /** How far each has come, by its number. */
  counts(): ReadonlyMap<Lane, number> {
    return new Map(this.all().map((lane) => [lane, lane.next]));
  }

  all(): readonly Lane[] {
    return this.#entered === undefined ? [this.root] : [...this.#entered.byNumber.values()];
  }

  /** Whether the code has asked for what the journal holds at this position. */
  asked(pos: number): boolean {
    const number = laneOf(pos);
    const lane = number === 0 ? this.root : this.#entered?.byNumber.get(number);
    return lane !== undefined && pos < lane.next;
  }
}

/** The first position of a lane that a fork does not keep: of its own lane it says so, of others if anything is kept. */
export function cutOf(at: number, lanes: readonly number[] | undefined, lane: number): number {
  if (laneOf(at) === lane) return at;
  return lanes?.find((pos) => laneOf(pos) === lane) ?? lane * laneRoom;
}

/** The first positions that are not kept, in each lane. */
export interface Cut {
  readonly before: number;
  readonly lanes?: readonly number[] | undefined;
}

/** What two cuts have in common. */
export function withinBoth(a: Cut, b: Cut): { before: number; lanes?: number[] } {
  const cuts = [a.before, ...(a.lanes ?? [])].map((pos) => Math.min(pos, cutOf(b.before, b.lanes, laneOf(pos))));
  const [before, ...lanes] = cuts;
  return { before: before!, ...(lanes.length > 0 && { lanes }) };
}
