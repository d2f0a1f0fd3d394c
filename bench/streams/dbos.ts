import { installPeers } from "../peers/peers.ts";
import { createDatabase } from "../peers/places.ts";
import { WorkerProcess } from "../peers/worker-process.ts";

type Ask =
  | { readonly ask: "burst"; readonly from: "workflow" | "step"; readonly count: number }
  | { readonly ask: "close" };

export interface DbosStreams {
  readonly chunks: number;
  /** The fastest of all: of the writer or its reader, from a workflow or a step. */
  readonly perSecond: number;
  readonly all: Readonly<Record<string, number>>;
}

/** Chunks a second of one DBOS workflow with one reader, on the same PostgreSQL server. */
export async function dbosStreams(server: string, chunks: number): Promise<DbosStreams> {
  installPeers();
  const url = await createDatabase(server, "dbos_streams");
  const worker = await WorkerProcess.run<Ask>({ system: "dbos", url } as { system: string }, {
    program: "streams/dbos.mjs",
  });
  try {
    const all: Record<string, number> = {};
    for (const from of ["workflow", "step"] as const) {
      await worker.ask({ ask: "burst", from, count: Math.ceil(chunks / 10) }); // warm-up
      const { seen, written, read } = await worker.ask({ ask: "burst", from, count: chunks }, 600_000);
      if (seen !== chunks) throw new Error(`the reader of DBOS has ${seen} of ${chunks} chunks`);
      all[`${from}Written`] = Math.round(written!);
      all[`${from}Read`] = Math.round(read!);
    }
    return { chunks, perSecond: Math.max(...Object.values(all)), all };
  } finally {
    await worker.close();
  }
}
