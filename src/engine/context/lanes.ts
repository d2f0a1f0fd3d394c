import { TapeError } from "../../model/errors.ts";
import { laneOf, laneRoom } from "../../model/record-context.ts";
import type { History } from "../replay/history.ts";

/** A branch of a workflow with its own positions, so that replay finds its operations whatever other branches do. */
export class Lane {
  /** Of the workflow itself: 0, and in a later generation one above all earlier lanes. */
  readonly number: number;
  /** The names of the enclosing lanes, and its own. */
  readonly path: string;
  /** The drive that it belongs to. */
  readonly of: object;
  /** The next position. */
  next: number;
  /** The kinds of its operations, in order. */
  readonly kinds: (string | undefined)[] = [];
  /** How many random values were drawn. */
  samples = 0;
  /** A branch is running in it; a second one is rejected. */
  busy = false;
  /** The journal has its number. */
  known: boolean;

  constructor(of: object, number: number, path: string, known: boolean) {
    this.of = of;
    this.number = number;
    this.path = path;
    this.known = known;
    this.next = number * laneRoom;
  }
}

/** A longer path is a mistake in the workflow, and makes an unreadable record. */
const maxPathChars = 512;

/** The lanes of one drive. A lane gets its number when it is first entered; from then on the journal has it. */
export class Lanes {
  readonly root: Lane;
  readonly #history: History;
  /** undefined: the code has entered only the root lane, as most workflows do. */
  #entered: { readonly byPath: Map<string, Lane>; readonly byNumber: Map<number, Lane>; last: number } | undefined;

  constructor(of: object, history: History) {
    this.root = new Lane(of, history.generation.lane, "", true);
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
        `the path of a lane has at most ${maxPathChars} characters, including the enclosing lanes`,
      );
    }
    this.#entered ??= {
      byPath: new Map(),
      byNumber: new Map([[this.root.number, this.root]]),
      last: this.#lastKnown(),
    };
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
    let last = this.root.number;
    for (const number of this.#history.lanes.values()) if (number > last) last = number;
    return last;
  }

  /** The lane of a position. */
  at(pos: number): Lane {
    return this.#entered?.byNumber.get(laneOf(pos)) ?? this.root;
  }

  /** The first position of a generation that follows: that of a lane that this one does not have. */
  get firstAfter(): number {
    return ((this.#entered?.last ?? this.#lastKnown()) + 1) * laneRoom;
  }

  /** How many positions the code has taken in all lanes. */
  get taken(): number {
    if (this.#entered === undefined) return this.root.next - this.root.number * laneRoom;
    return this.all().reduce((sum, { next, number }) => sum + next - number * laneRoom, 0);
  }

  /** The next position of each lane. */
  counts(): ReadonlyMap<Lane, number> {
    return new Map(this.all().map((lane) => [lane, lane.next]));
  }

  all(): readonly Lane[] {
    return this.#entered === undefined ? [this.root] : [...this.#entered.byNumber.values()];
  }

  /** Whether the code has requested the operation at this position. */
  isRequested(pos: number): boolean {
    const number = laneOf(pos);
    const lane = number === this.root.number ? this.root : this.#entered?.byNumber.get(number);
    return lane !== undefined && pos < lane.next;
  }
}

/** The first position of a lane that a fork does not keep. `lanes`: the cuts of lanes other than the one of `at`. */
export function cutOf(at: number, lanes: readonly number[] | undefined, lane: number): number {
  if (laneOf(at) === lane) return at;
  return lanes?.find((pos) => laneOf(pos) === lane) ?? lane * laneRoom;
}

/** The first position of each lane that is not kept. */
export interface Cut {
  readonly before: number;
  readonly lanes?: readonly number[] | undefined;
}

/** The cut that keeps what both cuts keep. */
export function withinBoth(a: Cut, b: Cut): { before: number; lanes?: number[] } {
  const cuts = [a.before, ...(a.lanes ?? [])].map((pos) => Math.min(pos, cutOf(b.before, b.lanes, laneOf(pos))));
  const [before, ...lanes] = cuts;
  return { before: before!, ...(lanes.length > 0 && { lanes }) };
}
