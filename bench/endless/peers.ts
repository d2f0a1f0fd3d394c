import { join } from "node:path";
import { installPeers } from "../peers/peers.ts";
import { type RestateServer, startRestate } from "../peers/restate-server.ts";
import { WorkerProcess } from "../peers/worker-process.ts";
import { say } from "../work.ts";
import { type EndlessPart, rounded } from "./part.ts";

type Ask = { readonly ask: "fill"; readonly id: string } | { readonly ask: "wake" } | { readonly ask: "close" };

interface Peer {
  readonly system: "dbos" | "restate";
  readonly prefix: readonly string[];
}

export interface PeerSizes {
  /** Steps of the short workflow and of the long one. */
  readonly few: number;
  readonly many: number;
}

const fillMs = 1_800_000;
const wakeMs = 600_000;

/**
 * DBOS and Restate with one workflow of many steps, which is how they write a loop without end: neither starts a new
 * history under the same id. Its process is killed, and another one started.
 *
 *   dbosWakeMs        from the first line of the workflow in the new process until it is live; `dbosShortWakeMs` with
 *                     fewer steps
 *   dbosWakeRatio     the first ÷ the second: 1 would mean that the history costs nothing
 *   dbosRecoveryMs    the same, from the start of the new process on: with what the system needs to notice
 *   dbosRssMb         the memory of the new process when it is live
 *
 * and the same for Restate, whose server calls the new process after a back-off of its own.
 */
export const peers: EndlessPart<PeerSizes> = {
  usual: { few: 1_000, many: 50_000 },
  small: { few: 20, many: 200 },
  figures: ["dbos", "restate"].flatMap((name) =>
    ["ShortWakeMs", "WakeMs", "WakeRatio", "RecoveryMs", "RssMb"].map((figure) => `${name}${figure}`),
  ),
  async measure(site, { few, many }) {
    installPeers();
    const figures: Record<string, number> = {};
    const both = async (peer: Peer, place: () => Promise<string>): Promise<void> => {
      const short = await wake({ ...peer, url: await place() }, "short", few);
      const long = await wake({ ...peer, url: await place() }, "long", many);
      say(`${peer.system}: ${few} steps ${JSON.stringify(short)}, ${many} steps ${JSON.stringify(long)}`);
      figures[`${peer.system}ShortWakeMs`] = rounded(short.enteredMs!, 1);
      figures[`${peer.system}WakeMs`] = rounded(long.enteredMs!, 1);
      figures[`${peer.system}WakeRatio`] = rounded(long.enteredMs! / short.enteredMs!, 1);
      figures[`${peer.system}RecoveryMs`] = Math.round(long.launchedMs!);
      figures[`${peer.system}RssMb`] = Math.round(long.rssMb!);
    };
    const attempt = async (system: Peer["system"], work: () => Promise<void>): Promise<void> =>
      work().catch((error: unknown) => site.skip(system, error instanceof Error ? error.message : String(error)));
    await attempt("dbos", async () => {
      // A database for each length: a launch recovers every workflow of the executor.
      await both({ system: "dbos", prefix: [] }, () => site.database());
    });
    await attempt("restate", async () => {
      const server: RestateServer | undefined = await startRestate(join(site.folder, "restate"));
      if (server === undefined) return site.skip("restate", "its server has no build for this platform");
      try {
        await both({ system: "restate", prefix: server.prefix }, async () => server.ingress);
      } finally {
        await server.stop();
      }
    });
    return figures;
  },
};

type Wake = Readonly<Record<string, number>>;

/** Executes the steps in one process, kills it, and measures the next one. */
async function wake(
  { system, url, prefix }: Peer & { readonly url: string },
  id: string,
  count: number,
): Promise<Wake> {
  const open = (recovers: boolean): Promise<WorkerProcess<Ask>> =>
    WorkerProcess.run<Ask>({ system, url, recovers, count } as { system: string }, {
      prefix,
      program: `endless/${system}.mjs`,
    });
  const first = await open(false);
  const { launchedMs } = await first.ask({ ask: "fill", id }, fillMs);
  say(`${system}: ${count} steps in ${Math.round(launchedMs!)} ms`);
  await first.kill();
  const second = await open(true);
  try {
    return await second.ask({ ask: "wake" }, wakeMs);
  } finally {
    await second.kill();
  }
}
