import { embedMany, generateImage } from "ai";
import { describe, expect, it } from "vitest";
import { durableEmbedding, durableImage } from "../../src/ai/more-models.ts";
import { ran } from "./ran.ts";

describe("other models", () => {
  it("embed once, and replay the vectors", async () => {
    let calls = 0;
    const model = {
      specificationVersion: "v4" as const,
      provider: "local",
      modelId: "vectors",
      maxEmbeddingsPerCall: 2,
      supportsParallelCalls: true,
      doEmbed: async ({ values }: { values: string[] }) => {
        calls++;
        return { embeddings: values.map((value) => [value.length, 0.5]), usage: { tokens: 3 }, warnings: [] };
      },
    };
    const { outcome, records } = await ran(async (tape) => {
      const { embeddings } = await embedMany({ model: durableEmbedding(model) as never, values: ["a", "bb", "ccc"] });
      await tape.sleep("1h");
      return embeddings;
    });
    expect(outcome).toEqual([
      [1, 0.5],
      [2, 0.5],
      [3, 0.5],
    ]);
    expect(calls).toBe(2);
    const made = records.flatMap(({ kind, data }) => (kind === "decision.made" ? [data] : []));
    expect(made).toMatchObject([{ model: "local/vectors", usage: { input: 3, output: 0 } }, { usage: { input: 3 } }]);
  });

  it("draw once, also a large image, and refuse one that no record holds", async () => {
    let calls = 0;
    const draw = (bytes: number) => ({
      specificationVersion: "v4" as const,
      provider: "local",
      modelId: "pixels",
      maxImagesPerCall: 1,
      doGenerate: async () => {
        calls++;
        const response = { timestamp: new Date(5), modelId: "pixels", headers: { cookie: "secret" } };
        return { images: [new Uint8Array(bytes).fill(7)], warnings: [], response };
      },
    });
    const drawing = (bytes: number) =>
      ran(async (tape) => {
        const { image } = await generateImage({ model: durableImage(draw(bytes)) as never, prompt: "a cat" });
        await tape.sleep("1h");
        return image.uint8Array.length;
      });
    const { outcome, records } = await drawing(1_000);
    expect(outcome).toBe(1_000);
    expect(calls).toBe(1);
    expect(JSON.stringify(records.map(({ data }) => data))).not.toContain("secret");
    expect((await drawing(5_000_000)).outcome).toBe(5_000_000);
    expect((await drawing(30_000_000)).outcome).toMatchObject({ code: "TAPE_TOO_LARGE" });
    expect(calls).toBe(3);
    expect(() => durableImage({} as never)).toThrow(/durableImage needs a model/);
  });
});
