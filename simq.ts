import { planOf } from "./simulation/plan.ts";
import { simulateSeed } from "./simulation/suite.ts";
const from = Number(process.argv[2] ?? 1), n = Number(process.argv[3] ?? 30);
let done = 0; const t0 = Date.now(); const judged: Record<string, number> = {}; let bad = 0;
for (let seed = from; done < n; seed++) {
  if (planOf(seed).queues.queues.length === 0) continue;
  done++;
  const r = await simulateSeed(seed, done % 10 === 0);
  for (const [k, v] of Object.entries(r.judged)) judged[k] = (judged[k] ?? 0) + v;
  if (r.broken.length > 0) { bad++; console.log("seed", seed, r.broken.slice(0, 4).join("\n   ")); }
}
console.log(done, "plans", bad, "broken", Date.now() - t0, "ms");
for (const k of ["slotsHold", "slotsAreProjected", "nothingPassesTheQueue", "ratesHold", "oldestFirst", "classesAreKept", "fairAmongKeys", "uniqueIsOne", "lastInputWins", "queuesMove"]) console.log(k, judged[k]);
