import type { Log } from "../../base/log.ts";

/** Resolves on the first SIGTERM or SIGINT. */
export function stopSignal(log: Log): Promise<void> {
  return new Promise((resolve) => {
    let stopping = false;
    const onSignal = (signal: string): void => {
      if (stopping) {
        log("error", "reactors.killed", { signal });
        process.exit(1); // the second signal forces an exit: the leases expire
      }
      stopping = true;
      log("info", "reactors.stopping", { signal });
      resolve();
    };
    process.on("SIGTERM", onSignal);
    process.on("SIGINT", onSignal);
  });
}
