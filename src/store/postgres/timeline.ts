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
  readonly outageRetry: OutageRetry;
  /** A function, because the writer needs the timeline, too. */
  readonly writer: () => Writer;
  readonly log: Log;
}

/**
 * Identifies the server at our address. A promoted standby may have lost commits, and with them issued tokens and
 * journal numbers. It has another timeline, and the store's epoch must be raised before any are issued again.
 * Statements that issue them return nothing while the timeline is not the recorded one; this class notices.
 *
 *   suspect ──check──▶ known ──a new connection──▶ suspect          (behind a pooler always suspect: it hides them)
 */
export class Timeline {
  readonly #options: TimelineOptions;
  #suspect = true;
  #checking: Promise<void> | undefined;

  constructor(options: TimelineOptions) {
    this.#options = options;
    options.connections.onConnect(() => {
      this.#suspect = true;
    });
  }

  /** Resolves once the epoch is that of the current server. `force` checks even if nothing suggests a change. */
  check(force = false): Promise<void> {
    if (!this.#suspect && !force) return Promise.resolve();
    this.#checking ??= this.#compare().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  async #compare(): Promise<void> {
    const { connections, outageRetry, writer, log } = this.#options;
    this.#suspect = connections.settings.pooler !== "none";
    try {
      const { timeline, timeline_now: current } = await outageRetry.run(() => metaOf(connections));
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
