import { parseArgs } from "node:util";
import { Member } from "./neighbours/member.ts";
import { type Backend, noisy, openSite, type Site, type Way } from "./neighbours/site.ts";
import type { Order } from "./neighbours/work.ts";
import type { BenchOptions } from "./run.ts";
import { percentile, say } from "./work.ts";

/**
 * What one tenant can do to the others: twelve workers of three tenants on one store, and the same on a second store
 * without a flood. Both are measured at the same time, so that other load on the machine, and the CPU time that the flood
 * itself takes, affect both figures.
 *
 *   backlog   100,000 runs of a workflow that no process serves are due
 *   starts    runs of a served workflow are started as fast as possible
 *   unserved  the same of a workflow that no process serves, which creates the backlog
 *   feed      eight readers read the feed from its beginning, again and again
 *
 * Twice: with each process on the store itself, and with all of them through one server.
 */
export async function benchNeighbours({ flags }: BenchOptions): Promise<object> {
  const { values } = parseArgs({
    args: [...flags],
    options: {
      runs: { type: "string", default: "100000" },
      seconds: { type: "string", default: "15" },
      only: { type: "string" },
      way: { type: "string" },
      json: { type: "boolean" },
    },
  });
  const plan = { runs: Number(values.runs), ms: Number(values.seconds) * 1000 };
  const figures: Record<string, object> = {};
  for (const backend of ["sqlite", "postgres"] as const) {
    if (values.only !== undefined && values.only !== backend) continue;
    for (const way of ["embedded", "server"] as const) {
      if (values.way !== undefined && values.way !== way) continue;
      figures[way === "embedded" ? backend : `${backend}Server`] = await onStore(backend, way, plan);
    }
  }
  return figures;
}

interface Plan {
  readonly runs: number;
  readonly ms: number;
}

interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly runs: number;
}

interface Phase {
  readonly flooded: Latency;
  readonly beside: Latency;
  /** Of the flooded store ÷ of the one beside it, in the same moments. */
  readonly p50Ratio: number;
  readonly p99Ratio: number;
  /** Of the flooded store ÷ of itself before the flood. */
  readonly p50OfBefore?: number;
  readonly p99OfBefore?: number;
}

async function onStore(backend: Backend, way: Way, { runs, ms }: Plan): Promise<object> {
  const name = way === "embedded" ? backend : `${backend}, server`;
  const sites: Site[] = [];
  const flooders: Member[] = [];
  try {
    for (let k = 0; k < 2; k++) sites.push(await openSite(backend, way));
    const [flooded, beside] = sites as [Site, Site];
    const flood = await Member.open("caller", flooded.place, noisy);
    flooders.push(flood);
    await measure([flooded, beside], 3_000); // warm-up
    const before = await measure([flooded, beside], ms);
    const idleBefore = await idle([flooded, beside], ms);
    send(name, "quiet", before);

    const during = async (what: string, order: Order): Promise<Phase> => {
      const done = flood.ask(order, "done");
      const phase = await measure([flooded, beside], ms, before);
      flood.send({ do: "stop" });
      await done;
      send(name, what, phase);
      return phase;
    };
    const unserved = await during("unserved", { do: "start", runs, served: false });
    await flood.ask({ do: "start", runs, served: false }, "done"); // whatever was missing: the same ids
    const backlog = await measure([flooded, beside], ms, before);
    send(name, "backlog", backlog);
    const idleAfter = await idle([flooded, beside], ms);
    say(`${name}: idle ${JSON.stringify({ idleBefore, idleAfter })}`);
    const feed = await during("feed", { do: "read", readers: 8 });
    const starts = await during("starts", { do: "start", runs: 1e9, served: true });
    return {
      ...{ before, unserved, backlog, feed, starts },
      idle: {
        ...{ before: idleBefore[0], backlog: idleAfter[0], beside: idleAfter[1] },
        ratio: round2(idleAfter[0] / idleAfter[1]),
        ofBefore: round2(idleAfter[0] / idleBefore[0]),
      },
    };
  } finally {
    for (const one of flooders) await one.close();
    for (const site of sites) await site.close();
  }
}

async function measure(sites: readonly [Site, Site], ms: number, before?: Phase): Promise<Phase> {
  const [flooded, beside] = (await Promise.all(sites.map(async (site) => summary(await site.latencies(ms))))) as [
    Latency,
    Latency,
  ];
  return {
    ...{ flooded, beside },
    p50Ratio: round2(flooded.p50 / beside.p50),
    p99Ratio: round2(flooded.p99 / beside.p99),
    ...(before && {
      p50OfBefore: round2(flooded.p50 / before.flooded.p50),
      p99OfBefore: round2(flooded.p99 / before.flooded.p99),
    }),
  };
}

async function idle(sites: readonly [Site, Site], ms: number): Promise<[number, number]> {
  const [flooded, beside] = await Promise.all(sites.map((site) => site.idle(ms)));
  return [round2(flooded!), round2(beside!)];
}

const round2 = (value: number): number => Math.round(value * 100) / 100;

function summary(latencies: readonly number[]): Latency {
  const at = (share: number): number => round2(percentile(latencies, share));
  return { p50: at(0.5), p99: at(0.99), runs: latencies.length };
}

function send(where: string, name: string, { flooded, beside, p50Ratio, p99Ratio }: Phase): void {
  const both = ({ p50, p99, runs }: Latency): string => `p50 ${p50} p99 ${p99} ms (${runs} runs)`;
  say(`${where} ${name}: ${both(flooded)}, beside ${both(beside)}, ratio ${p50Ratio} / ${p99Ratio}`);
}
