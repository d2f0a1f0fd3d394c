import type { Log } from "../../base/log.ts";
import { TapeError } from "../../model/errors.ts";
import { restoredPlan } from "../sql/plans/claim.ts";
import type { RowOf } from "../sql/statements.gen.ts";
import type { Connections } from "./connections.ts";
import { readFault } from "./errors.ts";
import type { OutageRetry } from "./outage-retry.ts";
import type { Writer } from "./writer.ts";

export interface TimelineOptions {
  readonly connections: Connections;
  readonly patience: OutageRetry;
  /** Given when it is needed first: the writer needs us too. */
  readonly writer: () => Writer;
  readonly log: Log;
}

/**
 * Which server answers at our address. A promoted standby may have lost commits, and with them tokens and journal
 * numbers that were handed out: its timeline is another one, and the store's epoch must be raised before any is handed
 * out again. Statements that hand them out refuse to, as long as the timeline is not the recorded one; here we notice.
 *
 *   suspect ──look──▶ known ──a new connection──▶ suspect          (behind a pooler always suspect: it hides them)
 */
export class Timeline {
  readonly #options: TimelineOptions;
  #suspect = true;
  #looking: Promise<void> | undefined;

  constructor(options: TimelineOptions) {
    this.#options = options;
    options.connections.onConnect(() => {
      this.#suspect = true;
    });
  }

  /** Resolves once the epoch is the one of the server that answers. */
  look(surely = false): Promise<void> {
    if (!this.#suspect && !surely) return Promise.resolve();
    this.#looking ??= this.#compare().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #compare(): Promise<void> {
    const { connections, patience, writer, log } = this.#options;
    this.#suspect = connections.settings.pooler !== "none";
    try {
      const { timeline, timeline_now: current } = await patience.run(() => metaOf(connections));
      if (timeline === null || current === null || timeline === current) return;
      const plan = () => restoredPlan(`timeline ${timeline} became ${current}`, "meta.promoted");
      const raised = await writer().transact(plan, { allocates: false });
      if (raised !== undefined) log("warn", "store.epoch_raised", { epoch: raised.epoch, timeline: current });
    } catch (error) {
      this.#suspect = true;
      throw readFault(error);
    }
  }
}

export async function metaOf(connections: Connections): Promise<RowOf<"meta.get">> {
  const { rows } = await connections.ask("meta.get", {});
  if (rows[0] === undefined) throw new TapeError("TAPE_INVARIANT", "the store has no meta row");
  return rows[0];
}
