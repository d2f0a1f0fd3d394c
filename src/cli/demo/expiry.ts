import { systemClock } from "../../base/clock.ts";
import type { Tape } from "../../host/tape.ts";
import type { Screen } from "../screen.ts";

/** Shows how the lease of a dead worker expires. */
export async function waitForExpiry(
  screen: Screen,
  app: Tape,
  { run, ttlMs, holder }: { readonly run: string; readonly ttlMs: number; readonly holder: string },
): Promise<void> {
  for (;;) {
    const lease = await app.store.read.lease(app.tenant, { run });
    if (lease === undefined || lease.state !== "HELD") break;
    screen.bar(`lease of ${holder}`, lease.remainingMs, ttlMs);
    await systemClock.sleep(Math.min(100, lease.remainingMs));
  }
  screen.barDone();
  screen.line("   the lease has expired");
}
