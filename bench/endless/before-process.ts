// Measures the code that it stands in: `before.ts` copies this file into a checkout of an earlier commit, too.
import { createRunner, Tape, workflow } from "../../src/exports/index.ts";

export interface RateRequest {
  readonly what: "steps" | "starts";
  /** Runs at a time. */
  readonly runs: number;
  readonly ms: number;
}

const payload = "x".repeat(90);
let executed = 0;

const ten = workflow("ten", async (tape, _input: number) => {
  for (let k = 0; k < 10; k++) {
    await tape.step(`step-${k}`, () => {
      executed++;
      return { ok: true, value: payload, at: k };
    });
  }
});
/** Never driven here: only its start counts. */
const unserved = workflow("unserved", async (_tape, _input: number) => {});

const app = await Tape.open({
  store: process.argv[2]!,
  runner: createRunner({ workflows: [ten] }),
  concurrency: 1_000,
  log: "silent",
  report: false,
});

async function rate({ what, runs, ms }: RateRequest): Promise<number> {
  const started = performance.now();
  const before = executed;
  let starts = 0;
  await Promise.all(
    Array.from({ length: runs }, async (_, k) => {
      while (performance.now() < started + ms) {
        if (what === "steps") await (await app.start(ten, k)).result();
        else await app.start(unserved, k);
        starts++;
      }
    }),
  );
  return ((what === "steps" ? executed - before : starts) * 1_000) / (performance.now() - started);
}

process.on("message", (request: RateRequest) => {
  rate(request).then((perSecond) => process.send!({ say: "rate", perSecond }));
});
process.once("disconnect", () => process.exit(0));
process.send!({ say: "ready" });
