import { type AgentExecutionEvent, DefaultExecutionEventBus } from "@a2a-js/sdk/server";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import type { RunEvent, RunFollower } from "../host/follow-run.ts";
import { laneOf } from "../model/record-context.ts";
import { isTerminal } from "./messages.ts";
import type { RunPlace } from "./projection.ts";
import { ShownTask } from "./shown-task.ts";
import type { TaskView } from "./task-store.ts";

/** What a feed reads: the run, and the task as the run's journal has it. */
export interface FeedSource {
  readonly app: RunFollower;
  readonly log: Log;
  view(): Promise<TaskView | undefined>;
}

type Listener = ((event: AgentExecutionEvent) => void) & (() => void);

/** Events that come before they are recorded, or show nothing. */
const unrecorded: ReadonlySet<RunEvent["type"]> = new Set(["turn-started", "reasoning", "part"]);

/**
 * The events of one task for one request. Each request has a feed of its own, which follows the run: any process answers
 * it, whichever drives the run, and two requests do not disturb each other.
 *
 * A feed is idle until `follow`, or with `lazy` until its first listener. It follows until the task ends or asks its
 * client, or its listeners have left.
 */
export class TaskFeed extends DefaultExecutionEventBus {
  readonly #source: FeedSource;
  readonly #lazy: boolean;
  readonly #left = new AbortController();
  #listeners = 0;
  #started = false;

  constructor(source: FeedSource, { lazy }: { readonly lazy: boolean }) {
    super();
    this.#source = source;
    this.#lazy = lazy;
  }

  override on(name: "event" | "finished", listener: Listener): this {
    super.on(name as "event", listener);
    if (name !== "event") return this;
    this.#listeners++;
    if (this.#lazy && !this.#started) void this.#watch();
    return this;
  }

  override off(name: "event" | "finished", listener: Listener): this {
    super.off(name as "event", listener);
    if (name !== "event") return this;
    this.#listeners--;
    // While the executor works, the handler has a listener of its own.
    if (this.#listeners <= (this.#lazy ? 0 : 1)) this.#left.abort();
    return this;
  }

  /** Publishes what happens after this view of the task. */
  async follow({ task, run }: TaskView): Promise<void> {
    this.#started = true;
    if (run === undefined) return;
    const shown = new ShownTask(task, (event) => this.publish(event));
    const { signal } = this.#left;
    try {
      await this.#each(shown, run, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async #each(shown: ShownTask, from: RunPlace, signal: AbortSignal): Promise<void> {
    let place = from;
    const isOver = async (): Promise<boolean> => {
      const view = await this.#source.view();
      place = view?.run ?? place;
      return view === undefined || shown.change(view.task);
    };
    // What happened since the view was read is recorded; words of the turn in progress come from its beginning.
    for await (const event of this.#source.app.streams.follow(place.id, { after: `${place.seq}.0`, signal })) {
      if (unrecorded.has(event.type)) continue;
      if (event.type === "turn-reset") shown.reset();
      else if (event.type !== "text") {
        if (await isOver()) return;
      } else if (isCurrent(event.pos, place)) {
        if (!shown.isWorking && (await isOver())) return;
        shown.words(event.pos, event.text);
      }
    }
  }

  async #watch(): Promise<void> {
    this.#started = true;
    try {
      const view = await this.#source.view();
      if (view === undefined) return;
      // It ended while the request was on its way: a client that waits for an event is shown the end.
      const isEnd = isTerminal(view.task.status?.state);
      const unseen = { ...view.task, artifacts: [], status: undefined };
      if (isEnd) new ShownTask(unseen, (event) => this.publish(event)).change(view.task);
      else await this.follow(view);
    } catch (error) {
      this.#source.log("error", "a2a.feed_failed", { ...errorFields(error) });
    } finally {
      this.finished();
    }
  }
}

/** Words of a turn that has not ended, in the lane of the conversation. */
function isCurrent(pos: number, { lane, turn }: RunPlace): boolean {
  return laneOf(pos) === (lane ?? laneOf(pos)) && (turn === undefined || pos > turn);
}
