import { parseArgs } from "node:util";
import { seededRandom, systemRandom } from "../../../src/base/random.ts";
import { killedMovers, outage } from "./rounds.ts";

/** What the tenants of the other shard keep of their speed. */
const minRatio = 0.9;

/** One of two shards is killed under load; then a tenant moves `--moves` times while its movers are killed. */
export async function shards(args: readonly string[]): Promise<boolean> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      moves: { type: "string", default: "20" },
      seconds: { type: "string", default: "20" },
      seed: { type: "string", default: String(systemRandom.int(1_000_000)) },
    },
  });
  const down = await outage(Number(values.seconds) * 1_000);
  const rates = `${down.before.toFixed(0)} steps/s before, ${down.during.toFixed(0)} during`;
  console.log(
    `a shard was killed under load: ${rates}, ratio ${down.ratio.toFixed(2)}; ${down.runs} runs of its tenant`,
  );
  const slow = down.ratio < minRatio ? [`the other shard kept less than ${minRatio} of its steps`] : [];
  const random = seededRandom(values.seed);
  const moved = await killedMovers(Number(values.moves), () => random.float());
  console.log(`seed ${values.seed}: ${moved.moves} moves, ${moved.kills} movers killed, ${moved.runs} runs`);
  const faults = [...down.faults, ...slow, ...moved.faults];
  for (const fault of faults) console.error(` × ${fault}`);
  return faults.length === 0;
}
