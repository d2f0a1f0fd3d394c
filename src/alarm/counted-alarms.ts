import type { Alarms } from "./alarms.ts";

/** Alarms that this process has requested, by outcome. */
export interface AlarmCounts {
  readonly set: number;
  readonly failed: number;
}

/** The same alarms, and how many requests succeeded and failed. */
export function countedAlarms(alarms: Alarms): { readonly alarms: Alarms; readonly counts: AlarmCounts } {
  const counts = { set: 0, failed: 0 };
  return {
    counts,
    alarms: {
      furthestMs: alarms.furthestMs,
      async set(alarm) {
        try {
          await alarms.set(alarm);
          counts.set++;
        } catch (error) {
          counts.failed++;
          throw error;
        }
      },
    },
  };
}
