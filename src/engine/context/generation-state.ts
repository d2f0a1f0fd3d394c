import { TapeError } from "../../model/errors.ts";
import type { NewRecord } from "../../model/records.ts";
import { asStored } from "../replay/stored-value.ts";

/** Operations that a run must not leave behind when it continues as new. */
export const ownWork: ReadonlySet<string> = new Set(["effect.intended", "child.started"]);

/** What the code of one generation has received from the inbox. */
export class GenerationState {
  /** The highest number of a note that the code has received. */
  lastNoteReceived = 0;
  /** Requests that the code has received and not answered, by their numbers in the inbox. */
  readonly unanswered = new Map<number, string>();

  /** Replies to the requests that are left without one. */
  openReplies(pos: number): NewRecord[] {
    return [...this.unanswered].map(([note, gate]) => {
      const error = new TapeError("TAPE_RUN_ENDED", `gate ${gate}: the run continued as new without a reply`, { gate });
      return { kind: "reply.sent", data: { pos, note, error: asStored(error) } };
    });
  }
}
