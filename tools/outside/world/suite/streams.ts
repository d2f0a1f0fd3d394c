import { expect } from "vitest";
import { type Cases, newTenant, open } from "./places.ts";
import { newRunId } from "./runs.ts";

const decoder = new TextDecoder();

/** Reads `max` chunks, or up to the end. */
async function read(stream: ReadableStream<Uint8Array>, max = Number.POSITIVE_INFINITY): Promise<string[]> {
  const reader = stream.getReader();
  const found: string[] = [];
  while (found.length < max) {
    const { done, value } = await reader.read();
    if (done) return found;
    found.push(decoder.decode(value));
  }
  await reader.cancel();
  return found;
}

/** Streams of runs. */
export function streams({ it, place }: Cases): void {
  it("are resumed by readers and writers after a restart", async () => {
    const tenant = newTenant();
    const run = newRunId();
    const first = open(place, tenant);
    await first.streams.write(run, "out", "0");
    await first.streams.writeMulti!(run, "out", ["1", "2", "3"]);
    expect(await read(await first.streams.get(run, "out"), 2)).toEqual(["0", "1"]);
    await first.close();
    const second = open(place, tenant);
    const rest = read(await second.streams.get(run, "out", 2));
    await second.streams.writeMulti!(run, "out", ["4", "5"]);
    await second.streams.close(run, "out");
    expect(await rest).toEqual(["2", "3", "4", "5"]);
    expect(await read(await second.streams.get(run, "out", -2))).toEqual(["4", "5"]);
    expect(await read(await second.streams.get(run, "out", 99))).toEqual([]);
    expect(await second.streams.getInfo(run, "out")).toEqual({ tailIndex: 5, done: true });
    expect(await second.streams.list(run)).toEqual(["out"]);
  });

  it("have one order, however many processes write", async () => {
    const tenant = newTenant();
    const run = newRunId();
    const worlds = [open(place, tenant), open(place, tenant)];
    const reading = read(await worlds[1]!.streams.get(run, "out"));
    await Promise.all(
      worlds.flatMap((world, w) =>
        Array.from({ length: 15 }, (_, k) => world.streams.writeMulti!(run, "out", [`${w}-${k}a`, `${w}-${k}b`])),
      ),
    );
    await worlds[0]!.streams.close(run, "out");
    await worlds[1]!.streams.write(run, "out", "late");
    await worlds[1]!.streams.close(run, "out");
    const found = await reading;
    expect(found).toHaveLength(60);
    for (const w of [0, 1]) {
      const own = found.filter((text) => text.startsWith(`${w}-`));
      expect(own).toEqual(Array.from({ length: 15 }, (_, k) => [`${w}-${k}a`, `${w}-${k}b`]).flat());
    }
    // What was written together stays together.
    for (let k = 0; k < 60; k += 2) expect(found[k + 1]).toBe(found[k]!.replace("a", "b"));
    expect(await read(await worlds[0]!.streams.get(run, "out", 7))).toEqual(found.slice(7));
  });

  it("are listed in pages", async () => {
    const run = newRunId();
    const world = open(place, newTenant());
    const chunks = Array.from({ length: 300 }, (_, k) => `${k}`);
    await world.streams.writeMulti!(run, "out", chunks);
    const found: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await world.streams.getChunks(run, "out", { limit: 70, ...(cursor !== undefined && { cursor }) });
      expect(page.data.map(({ index }) => index)).toEqual(page.data.map((_, k) => found.length + k));
      found.push(...page.data.map(({ data }) => decoder.decode(data)));
      expect(page.done).toBe(false);
      if (!page.hasMore) break;
      cursor = page.cursor!;
    }
    expect(found).toEqual(chunks);
    await world.streams.close(run, "out");
    expect(await world.streams.getChunks(run, "out", { cursor: "300" })).toEqual({
      data: [],
      cursor: null,
      hasMore: false,
      done: true,
    });
    await expect(world.streams.write(run, "", "x")).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
    await expect(world.streams.write(run, "out", 7 as never)).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
  });

  it("wait for their writer without one, and stop when they are cancelled", async () => {
    const run = newRunId();
    const world = open(place, newTenant());
    const reader = (await world.streams.get(run, "out")).getReader();
    const waiting = reader.read();
    await reader.cancel();
    expect((await waiting).done).toBe(true);
  });
}
