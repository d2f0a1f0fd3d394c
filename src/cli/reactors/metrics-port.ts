import type { Log } from "../../base/log.ts";
import type { Tape } from "../../host/tape.ts";

/** Serves probes and metrics. On a platform that sets PORT, its probes come from outside. */
export async function serveMetrics({ metrics }: Tape, listen: string | undefined, log: Log): Promise<void> {
  const { PORT: port } = process.env;
  if (listen !== undefined) await metrics.start({ listen }, log, "tape.metrics.listen");
  else if (port !== undefined && port !== "") await metrics.start({ listen: `0.0.0.0:${port}` }, log, "PORT");
}
