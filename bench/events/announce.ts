import { say } from "../work.ts";
import type { AnnounceMessage } from "./announce-process.ts";
import { Child } from "./child.ts";
import { type EventPart, rounded } from "./part.ts";

/** How long a process polls often after its start. */
export interface IdleSizes {
  readonly settleMs: number;
  readonly measureMs: number;
}

export const idleSizes: Pick<EventPart<IdleSizes>, "usual" | "small"> = {
  usual: { settleMs: 20_000, measureMs: 60_000 },
  small: { settleMs: 100, measureMs: 500 },
};

/**
 * announceIdleQps: statements a second of a deployment whose reactors run behind push handlers, while nothing happens.
 * The announcer is its only process.
 */
export const announceIdle: EventPart<IdleSizes> = {
  ...idleSizes,
  figures: ["announceIdleQps"],
  async measure(site, { settleMs, measureMs }) {
    if (!site.stores.includes("postgres")) return {};
    const url = await site.store("postgres");
    const child = new Child<AnnounceMessage>("announce-process.ts", [url, `${settleMs}`, `${measureMs}`]);
    try {
      const { count, ms } = await child.receive("measured");
      for (const [name, times] of Object.entries(count.byName)) say(`${times} × ${name}`);
      return { announceIdleQps: rounded((count.total * 1_000) / ms) };
    } finally {
      await child.kill();
    }
  },
};
