// `npm run sim -- [--seeds N] [--from S] [--seed S]`: the simulation of test/simulation with as many seeds as wanted.
import { parseArgs } from "node:util";
import { simulateSeed, simulateSeeds } from "../src/testing/simulation/suite.ts";

const { values } = parseArgs({
  options: { seeds: { type: "string" }, from: { type: "string" }, seed: { type: "string" } },
});

if (values.seed !== undefined) {
  const report = await simulateSeed(values.seed, true);
  console.log(report.broken.length === 0 ? `seed ${values.seed} holds` : report.broken.join("\n"));
  console.log(`reached: ${report.marks.join(", ")}`);
  process.exitCode = report.broken.length === 0 ? 0 : 1;
} else {
  const count = Number(values.seeds ?? 1_000);
  const from = Number(values.from ?? 1);
  const began = performance.now();
  let done = 0;
  let broken = 0;
  const seeds = Array.from({ length: count }, (_, k) => from + k);
  const report = await simulateSeeds(seeds, (one) => {
    done++;
    if (one.broken.length > 0) console.log(`seed ${one.seed}: ${one.broken[0]} (${++broken} so far)`);
    if (done % 100 === 0) console.log(`${done} of ${count}, ${rate()} seeds/s, ${broken} broken`);
  });
  function rate(): string {
    return ((done * 1_000) / (performance.now() - began)).toFixed(1);
  }
  console.log(`\n${report.failures.join("\n\n")}\n`);
  for (const [mark, reached] of Object.entries(report.coverage)) console.log(`${String(reached).padStart(6)}  ${mark}`);
  const hours = (report.virtualMs / 3_600_000).toFixed(1);
  console.log(
    `${report.seeds} seeds, ${report.events} events, ${hours} virtual hours, ${rate()} seeds/s, ${broken} broken`,
  );
  process.exitCode = broken > 0 || Object.values(report.coverage).includes(0) ? 1 : 0;
}
