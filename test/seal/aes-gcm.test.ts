import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { aesGcm } from "../../src/seal/aes-gcm.ts";
import type { PayloadContext } from "../../src/seal/payload-codec.ts";
import { testCodec, testKey } from "./codec.ts";

const context: PayloadContext = { tenant: "acme", place: "run:r", kind: "step.done", field: "value" };
const text = Buffer.from("a secret");

describe("aesGcm", () => {
  it("decrypts what it has encrypted, and never encrypts twice into the same bytes", async () => {
    const codec = testCodec();
    const [one, two] = [await codec.encode(text, context), await codec.encode(text, context)];
    expect(Buffer.from(await codec.decode(one, context)).toString()).toBe("a secret");
    expect(Buffer.compare(one.data, two.data)).not.toBe(0);
    expect(Buffer.from(one.data).includes("a secret")).toBe(false);
  });

  it("draws its nonces from the given source", async () => {
    const [a, b] = [testCodec({ random: seededRandom(1) }), testCodec({ random: seededRandom(1) })];
    expect(await a.encode(text, context)).toEqual(await b.encode(text, context));
  });

  it("refuses a ciphertext of another tenant, place or key, and every changed byte", async () => {
    const codec = testCodec();
    const sealed = await codec.encode(text, context);
    const attempt = async (payload = sealed, at = context, with_ = codec) => with_.decode(payload, at);
    const refused = { code: "TAPE_PAYLOAD_REFUSED" };
    await expect(attempt(sealed, { ...context, tenant: "globex" })).rejects.toMatchObject(refused);
    await expect(attempt(sealed, { ...context, place: "run:other" })).rejects.toMatchObject(refused);
    await expect(attempt({ ...sealed, data: sealed.data.subarray(0, 20) })).rejects.toMatchObject(refused);
    const other = testCodec({ keys: { k1: testKey("wrong") } });
    await expect(attempt(sealed, context, other)).rejects.toMatchObject(refused);
    for (let k = 0; k < sealed.data.length; k++) {
      const data = Buffer.from(sealed.data);
      data[k]! ^= 1;
      await expect(attempt({ ...sealed, data })).rejects.toMatchObject(refused);
    }
    const renamed = testCodec({ keys: { k1: testKey("k1"), k2: testKey("k1") } });
    await expect(attempt({ ...sealed, key: "k2" }, context, renamed)).rejects.toMatchObject(refused);
  });

  it("kind and field may change: records copy payloads of each other", async () => {
    const codec = testCodec();
    const sealed = await codec.encode(text, context);
    await expect(
      Promise.resolve(codec.decode(sealed, { ...context, kind: "effect.outcome", field: "error" })),
    ).resolves.toEqual(text);
  });

  it("an old key reads, the current one writes, and an unknown one is named", async () => {
    const old = await testCodec().encode(text, context);
    const rotated = testCodec({ keys: { k1: testKey("k1"), k2: testKey("k2") }, current: "k2" });
    expect(Buffer.from(await rotated.decode(old, context)).toString()).toBe("a secret");
    expect((await rotated.encode(text, context)).key).toBe("k2");
    const shredded = testCodec({ keys: { k2: testKey("k2") }, current: "k2" });
    expect(() => shredded.decode(old, context)).toThrow(expect.objectContaining({ code: "TAPE_KEY_UNKNOWN" }));
  });

  it("keys and ids may come from functions, with promises", async () => {
    const codec = aesGcm({
      keys: async (id) => (id === "acme" ? testKey(id) : undefined),
      keyFor: async ({ tenant }) => tenant,
      hashKey: testKey("hash"),
    });
    const sealed = await codec.encode(text, context);
    expect(sealed.key).toBe("acme");
    expect(Buffer.from(await codec.decode(sealed, context)).toString()).toBe("a secret");
    await expect(codec.encode(text, { ...context, tenant: "globex" })).rejects.toMatchObject({
      code: "TAPE_KEY_UNKNOWN",
    });
  });

  it("hashes depend on tenant, scope and text, and not on the current key", async () => {
    const rotated = testCodec({ keys: { k2: testKey("k2") }, current: "k2" });
    const hash = async (tenant: string, scope: string, codec = testCodec()) => codec.hash("7", { tenant, scope });
    expect(await hash("acme", "a", rotated)).toBe(await hash("acme", "a"));
    const all = await Promise.all([hash("acme", "a"), hash("globex", "a"), hash("acme", "b")]);
    expect(new Set(all).size).toBe(3);
  });

  it("bad options are refused at once", () => {
    const good = { keys: { k1: testKey("k1") }, current: "k1", hashKey: testKey("hash") };
    const bad: object[] = [
      { keys: { k1: new Uint8Array(16) } },
      { keys: undefined },
      { current: "k9" },
      { current: undefined },
      { hashKey: new Uint8Array(8) },
    ];
    for (const wrong of bad) {
      const make = () => aesGcm({ ...good, ...wrong } as never);
      expect(make, JSON.stringify(wrong)).toThrow(expect.objectContaining({ code: "TAPE_BAD_INPUT" }));
    }
  });
});
