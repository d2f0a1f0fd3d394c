import { createRunner, type RunHandle, stream, Tape, workflow } from "../../src/exports/index.ts";
import { Child } from "../events/child.ts";
import { startServer } from "../served.ts";
import { median } from "../work.ts";
import type { ReadersMessage, ReadersRequest } from "./readers.ts";
import { sharedNow } from "./shared-clock.ts";

export interface Place {
  readonly url: string;
  /** The worker reaches the store through the server, which alone has the file. */
  readonly remote: boolean;
}

export interface LiveSizes {
  readonly runs: number;
  /** Chunks a second of each run. */
  readonly rate: number;
  readonly seconds: number;
}

type Talk = Omit<LiveSizes, "runs"> & { readonly into: "stream" | "nothing" };

const tokens = stream<string>("tokens");
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));

/** Writes the time, `rate` times a second. */
const talk = workflow("talk", (tape, { rate, seconds, into }: Talk) =>
  tape.step("talk", async (d) => {
    const out = into === "stream" ? d.stream(tokens) : undefined;
    const from = sharedNow();
    for (let k = 0; k < rate * seconds; k++) {
      await pause(from + (k * 1_000) / rate - sharedNow());
      await out?.write(`${sharedNow()} word `);
    }
  }),
);

const steps = workflow("steps", async (tape, until: number) => {
  let count = 0;
  for (; sharedNow() < until; count++) await tape.step("s", () => 1);
  return count;
});

/** Rounds of the ratio; each measures with streams and without. */
const rounds = 3;

/**
 * Runs that stream beside others that execute steps, and a reader for each in a process of its own. The steps also beside
 * the same bodies without a stream: what a model or a timer costs is not the stream's.
 */
export async function live({ url, remote }: Place, { runs, rate, seconds }: LiveSizes): Promise<object> {
  const server = await startServer(url);
  const runner = createRunner({ workflows: [talk, steps] });
  const app = remote
    ? await Tape.connect(server.url, { runner, log: "silent", concurrency: 500 })
    : await Tape.open({ store: url, runner, log: "silent", concurrency: 500 });
  const readers = new Child<ReadersMessage>("../streams/readers.ts", [server.url]);
  const perSecond = async (): Promise<number> => {
    const until = sharedNow() + seconds * 1_000;
    const counts = await Promise.all(Array.from({ length: 4 }, async () => (await app.start(steps, until)).result()));
    return counts.reduce((sum, count) => sum + count, 0) / seconds;
  };
  const talking = async (input: Talk): Promise<ReadersMessage | undefined> => {
    const started: RunHandle<void>[] = await Promise.all(Array.from({ length: runs }, () => app.start(talk, input)));
    const request: ReadersRequest = { runs: started.map(({ id }) => id) };
    if (input.into === "stream") readers.ask(request);
    await Promise.all(started.map((run) => run.result()));
    return input.into === "stream" ? readers.receive("read") : undefined;
  };
  try {
    await perSecond(); // warm-up
    await talking({ rate, seconds: 1, into: "stream" });
    const { received, p50, p99, worst } = (await talking({ rate, seconds, into: "stream" }))!;
    const [alone, beside, besideStreams]: number[][] = [[], [], []];
    for (let k = 0; k < rounds; k++) {
      alone!.push(await perSecond());
      for (const [into, list] of [
        ["nothing", beside!],
        ["stream", besideStreams!],
      ] as const) {
        const [count] = await Promise.all([perSecond(), talking({ rate, seconds, into })]);
        list.push(count);
      }
    }
    return {
      ...{ runs, rate, received, lost: runs * rate * seconds - received },
      ...{ p50: two(p50), p99: two(p99), worst: two(worst) },
      stepsAlone: Math.round(median(alone!)),
      besideStreams: two(median(besideStreams!) / median(beside!)),
      besideBodies: two(median(beside!) / median(alone!)),
    };
  } finally {
    await readers.kill();
    await app.close();
    await server.stop();
  }
}

const two = (value: number): number => Math.round(value * 100) / 100;
