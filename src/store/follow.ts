import type { Clock } from "../base/clock.ts";
import type { PublishedValue, Store, WakeHint } from "./contract/store.ts";
import { FollowPace } from "./follow-pace.ts";

/** Wake hints may be lost: followers poll at least this often. */
const pollMs = 1_000;

export interface Follow<T> {
  readonly store: Pick<Store, "onWake">;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Reads what is new; "end": there will be no more. */
  readonly page: () => Promise<readonly T[] | "end">;
  /** Whether this hint may concern the stream. */
  readonly concerns: (wake: WakeHint) => boolean;
  /** What it reads gives no wake hint: polls often while something comes. */
  readonly unannounced?: boolean;
}

/** Yields new pages and waits for a wake hint in between; ends with the signal. */
export async function* follow<T>(followed: Follow<T>): AsyncGenerator<readonly T[]> {
  const { store, clock, signal, page, concerns, unannounced = false } = followed;
  const pace = new FollowPace(clock, pollMs);
  let pending = false;
  let wakeUp = (): void => {};
  const unsubscribe = store.onWake((wake) => {
    if (!concerns(wake)) return;
    pending = true;
    wakeUp();
  });
  try {
    while (!signal.aborted) {
      pending = false;
      const found = await page();
      if (found === "end") return;
      if (found.length > 0 && unannounced) pace.came();
      if (found.length > 0) yield found;
      if (found.length > 0 || pending || signal.aborted) continue;
      if ("more" in found && found.more === true) {
        await clock.sleep(0, signal); // nothing for this caller in the stretch: other calls get a turn first
        continue;
      }
      const pause = new AbortController();
      wakeUp = () => pause.abort("hint");
      await clock.sleep(pace.next(), AbortSignal.any([signal, pause.signal]));
    }
  } finally {
    unsubscribe();
  }
}

/** Whether the hint may concern this journal. */
export const concernsJournal =
  (journal: number) =>
  (wake: WakeHint): boolean =>
    wake.of === "any" || ("journal" in wake && wake.journal === journal);

/** Where a published value is read. */
export interface WatchTarget extends Pick<Follow<unknown>, "clock" | "signal"> {
  readonly store: Pick<Store, "onWake" | "read">;
  readonly tenant: string;
  readonly run: string;
  readonly journal: number;
  readonly name: string;
  /** Only values of records after this one. */
  readonly after: number;
}

/** The values of one name as the run publishes them, the latest first; ends with the run. */
export function followPublished(target: WatchTarget): AsyncGenerator<readonly PublishedValue[]> {
  const { store, clock, signal, tenant, run, journal, name } = target;
  let { after } = target;
  return follow({
    ...{ store, clock, signal, concerns: concernsJournal(journal) },
    page: async () => {
      // Checked before the value is read: a value read after the end is the last one.
      const ended = (await store.read.run(tenant, run))?.endedAt !== null;
      const news = (await store.read.published(tenant, run, { name })).filter(({ seq }) => seq > after);
      after = news[0]?.seq ?? after;
      return news.length === 0 && ended ? "end" : news;
    },
  });
}
