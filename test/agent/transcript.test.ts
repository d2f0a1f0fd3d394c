import { expect, it, onTestFinished } from "vitest";
import { Transcript } from "../../src/agent/transcript.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";

async function opened(run: (list: Transcript<number>, tape: TapeContext, id: string) => Promise<unknown>) {
  const flow = workflow("flow", (tape, id: string) => run(new Transcript(tape, "list"), tape, id));
  const tape = await VirtualTape.open({ runner: createRunner({ workflows: [flow] }), log: "silent" });
  onTestFinished(() => tape.close());
  const end = async (id: string) => (await tape.settle()).find((one) => one.id === id)!;
  return { tape, flow, end, start: async (id: string) => tape.start(flow, id, { id }).then(() => end(id)) };
}

const numbers = (from: number, count: number) => Array.from({ length: count }, (_, k) => from + k);

it("is read as it was written, over pages and runs", async () => {
  const { tape, start } = await opened(async (list, _, id) => {
    if (id === "reader") return await list.items();
    for (let k = 0; k < 130; k += 13) await list.append(numbers(k, 13));
    await list.replaceLast(70, [1_000]);
    await list.append([]);
    return await list.items();
  });
  const expected = [...numbers(0, 60), 1_000];
  expect((await start("writer")).outcome).toEqual(expected);
  expect((await start("reader")).outcome).toEqual(expected);
  const pages = await tape.time.during(tape.store.read.values(tape.tape.tenant, "list/"));
  expect(pages.map(({ key }) => key)).toEqual(["list/0", "list/1", "list/2", "list/3"]);
});

it("is empty after clear, and can be filled again", async () => {
  const { start } = await opened(async (list, tape) => {
    await list.append(numbers(0, 49));
    await list.append(numbers(49, 49));
    await list.clear();
    const cleared = await new Transcript(tape, "list").items();
    await list.append([7]);
    return [cleared, await new Transcript(tape, "list").items()];
  });
  expect((await start("run")).outcome).toEqual([[], [7]]);
});

it("a large item gets a page of its own", async () => {
  const { tape, start } = await opened(async (list) => {
    for (let k = 0; k < 3; k++) await list.append([`${k}`.repeat(100_000) as never]);
    return (await list.items()).length;
  });
  expect((await start("run")).outcome).toBe(3);
  expect(await tape.time.during(tape.store.read.values(tape.tape.tenant, "list/"))).toHaveLength(3);
});

it("of two runs that add at the same time, the second one ends", async () => {
  const { tape, flow, end } = await opened(async (list, t, id) => {
    await list.items();
    if (id === "slow") await t.sleep("1h");
    await list.append([1]);
    return await list.items();
  });
  for (const id of ["slow", "quick"]) await tape.start(flow, id, { id });
  expect((await end("quick")).outcome).toEqual([1]);
  expect((await end("slow")).outcome).toMatchObject({ code: "TAPE_VERSION_CONFLICT" });
});
