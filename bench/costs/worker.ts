import { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { type FromWorker, type Point, sleepMs, type ToWorker, type WorkerSpec } from "./points.ts";

/** A worker in its own process, with default settings. Its upstream is an HTTP server in the parent. */
const spec = JSON.parse(process.argv[2] ?? "{}") as WorkerSpec;
const say = (message: FromWorker): void => void process.send?.(message);

async function request(path: string): Promise<string> {
  const response = await fetch(`${spec.upstream}${path}`, { method: "POST" });
  return response.text();
}

/** Reports to the parent where this process is. If it is to die here, no answer comes. */
const reach = (point: Point | "after"): Promise<string> => request(`/reach?point=${point}&by=${spec.name}`);
const apply = (what: string, key: string): Promise<string> => request(`/apply?what=${what}&key=${key}&by=${spec.name}`);

type Args = { readonly key: string };
const body = async ({ key }: Args): Promise<string> => {
  await reach("intended");
  await apply("call", key);
  await reach("returned");
  return key;
};
const observe = async ({ key }: Args) =>
  (await request(`/find?what=call&key=${key}`)) === "true" ? outcome.confirmed(key) : outcome.absent();
const compensate = {
  semantics: "idempotent" as const,
  run: async ({ key }: Args) => apply("compensate", key),
};

const { dispatch } = spec;
const call =
  spec.kind === "idempotent"
    ? effect("call", body, { semantics: "idempotent", dispatch, compensate })
    : spec.kind === "observed"
      ? effect("call", body, { dispatch, observe, compensate })
      : effect("call", body, { dispatch, allowUnsafe: "the benchmark measures what that costs" });

const work = workflow("work", async (tape, id: string) => {
  await tape.step("before", () => reach("step"));
  await call({ key: id });
  if (spec.fails) throw new Error("the run fails, and compensates its effect");
  await tape.step("after", () => reach("after"));
  return "done";
});

const nap = workflow("nap", async (tape, _id: string) => {
  await tape.step("before", () => reach("step"));
  await tape.sleep(sleepMs);
  await tape.step("after", () => reach("after"));
  return "done";
});

const runner = createRunner({ workflows: [work, nap], effects: [call] });
const app =
  typeof spec.store === "string"
    ? await Tape.open({ store: spec.store, runner, log: "silent" })
    : await Tape.connect(spec.store, { runner, log: "silent" });

process.on("message", async ({ do: what, id }: ToWorker) => {
  if (what === "start") await app.start(id.startsWith("nap") ? nap : work, id, { id });
  if (what === "finish") {
    const run = await app.run(id);
    const ended = await run.result().then(String, (error: { code?: string }) => error.code ?? String(error));
    say({ say: "ended", outcome: ended });
  }
  if (what === "close") {
    await app.close();
  }
});
process.once("disconnect", () => process.exit()); // the parent has ended
say({ say: "ready" });
