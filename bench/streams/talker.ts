import { systemClock } from "../../src/base/clock.ts";
import { createRunner, stream, Tape, workflow } from "../../src/exports/index.ts";

/** A process that drives a run whose bodies stream. The parent kills it in the middle of them. */
const [url = "", ttlMs = "", start = ""] = process.argv.slice(2);
const tokens = stream<string>("tokens");

const talk = workflow(
  "talk",
  async (tape, { bodies, chunks, gapMs }: { bodies: number; chunks: number; gapMs: number }) => {
    for (let body = 0; body < bodies; body++) {
      await tape.step(`body ${body}`, async (d) => {
        const call = `${body} ${process.pid}.${Math.round(systemClock.mono())}`;
        const out = d.stream(tokens);
        for (let k = 0; k < chunks; k++) {
          await out.write(`${call} ${k}`);
          await systemClock.sleep(gapMs);
        }
        return call;
      });
    }
  },
);

const app = await Tape.open({
  store: url,
  runner: createRunner({ workflows: [talk] }),
  leaseTtl: Number(ttlMs),
  log: "silent",
});
if (start !== "") await app.start(talk, JSON.parse(start) as never, { id: "talk" });
process.send!("ready");
