import { describe, expect, test } from "vitest";
import { uuidv4, uuidv7 } from "../../src/base/ids.ts";
import { type Random, seededRandom, systemRandom } from "../../src/base/random.ts";

const draws = (random: Random) => [
  random.float(),
  random.int(10),
  random.int(2 ** 40),
  random.bits63(),
  random.uuid(),
  random.uuid(1),
  ...random.bytes(5),
];

describe.each<[string, () => Random]>([
  ["system", () => systemRandom],
  ["seeded", () => seededRandom("any")],
])("%s random", (_, make) => {
  const random = make();

  test("float is in [0, 1) and uses its whole range", () => {
    const floats = Array.from({ length: 2000 }, () => random.float());
    expect(floats.every((value) => value >= 0 && value < 1)).toBe(true);
    const mean = floats.reduce((sum, value) => sum + value, 0) / floats.length;
    expect(Math.abs(mean - 0.5)).toBeLessThan(0.05);
    expect(floats.some((value) => (value * 2 ** 53) % 2 === 1)).toBe(true);
  });

  test("int reaches every value below its bound and no other", () => {
    const counts = new Array<number>(6).fill(0);
    for (let i = 0; i < 6000; i++) counts[random.int(6)]!++;
    expect(counts.length).toBe(6);
    for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(200);
    expect(random.int(1)).toBe(0);
    for (const below of [2 ** 31 + 1, 2 ** 32, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER]) {
      const values = Array.from({ length: 200 }, () => random.int(below));
      expect(values.every((value) => Number.isSafeInteger(value) && value >= 0 && value < below)).toBe(true);
      expect(Math.max(...values)).toBeGreaterThan(below / 2);
    }
  });

  test("int is uniform when its bound does not divide the range", () => {
    const below = 3 * 2 ** 30; // plain modulo would give the lowest third half of all draws
    let low = 0;
    for (let i = 0; i < 3000; i++) if (random.int(below) < 2 ** 30) low++;
    expect(Math.abs(low - 1000)).toBeLessThan(200);
  });

  test("int refuses what is no bound", () => {
    for (const below of [0, -1, 1.5, Number.NaN, 2 ** 53]) expect(() => random.int(below)).toThrow(RangeError);
  });

  test("bits63 fits a signed 64-bit integer", () => {
    const values = Array.from({ length: 200 }, () => random.bits63());
    expect(values.every((value) => value >= 0n && value < 2n ** 63n)).toBe(true);
    expect(values.some((value) => value >= 2n ** 62n)).toBe(true);
    expect(values.some((value) => (value & 0x8000_0000n) !== 0n)).toBe(true);
    expect(new Set(values).size).toBe(values.length);
  });

  test("bytes have the length asked for", () => {
    for (const n of [0, 1, 4, 5, 4097]) expect(random.bytes(n).length).toBe(n);
    expect(new Set(random.bytes(16384)).size).toBe(256);
  });

  test("uuid is version 4, with a time version 7", () => {
    expect(random.uuid()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(random.uuid(0)).toMatch(/^00000000-0000-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});

describe("seeds", () => {
  test("repeat themselves, as number or as text", () => {
    expect(draws(seededRandom(7))).toEqual(draws(seededRandom("7")));
  });

  test("neighbours differ", () => {
    const first = Array.from({ length: 1000 }, (_, seed) => seededRandom(seed).float());
    expect(new Set(first).size).toBe(1000);
    expect(Math.abs(first.reduce((sum, value) => sum + value, 0) / 1000 - 0.5)).toBeLessThan(0.05);
  });

  test("keep their meaning: a recorded seed must find the same failure next year", () => {
    expect(draws(seededRandom("pinned"))).toEqual([
      0.10966753121592243,
      6,
      342341933874,
      5547230421964453027n,
      "82778ca4-2153-459b-97b4-a21d305dc18d",
      "00000000-0001-73f3-b771-f786037d08ad",
      ...[106, 4, 128, 116, 26],
    ]);
  });
});

describe("uuidv7", () => {
  const zeros = { bytes: (n: number) => new Uint8Array(n) };
  const ones = { bytes: (n: number) => new Uint8Array(n).fill(0xff) };

  test("holds the time of RFC 9562's example, version and variant", () => {
    const random = {
      bytes: () => new Uint8Array([0, 0, 0, 0, 0, 0, 0x0c, 0xc3, 0x18, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f]),
    };
    expect(uuidv7(1645557742000, random)).toBe("017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
    expect(uuidv7(0, zeros)).toBe("00000000-0000-7000-8000-000000000000");
    expect(uuidv7(2 ** 48 - 1, ones)).toBe("ffffffff-ffff-7fff-bfff-ffffffffffff");
    expect(uuidv4(ones)).toBe("ffffffff-ffff-4fff-bfff-ffffffffffff");
  });

  test("sorts by time, whatever the random bits", () => {
    for (const ms of [0, 255, 65535, 2 ** 32 - 1, 2 ** 40, 1645557742000.9]) {
      expect(uuidv7(ms, ones) < uuidv7(ms + 1, zeros)).toBe(true);
    }
  });

  test("refuses what is no time", () => {
    for (const ms of [-1, 2 ** 48, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => uuidv7(ms, zeros)).toThrow(RangeError);
    }
  });
});
