import { describe, expect, it } from "vitest";
import type { DecisionContext, StepOptions, TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { stream } from "../../src/sdk/stream.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { Chunk, Store } from "../../src/store/contract/store.ts";
import { StreamTails } from "../../src/store/stream-tails.ts";
import { settled } from "../../testkit/clock.ts";
import { type Stage, stage, tenant } from "./stage.ts";

const tokens = stream<string>("tokens");
const flow = (run: (tape: TapeContext, input: never) => unknown, name = "flow"): AnyWorkflow =>
  workflow(name, run as never) as unknown as AnyWorkflow;

/** Offset and value of each chunk; a rewind as the part in brackets. */
async function shown(store: Store, run: string, name = "tokens", from = 0): Promise<unknown[]> {
  const [page] = await store.read.chunks(tenant, [{ run, stream: name, from }]);
  return page!.chunks.map(brief);
}
const brief = (chunk: Chunk): unknown =>
  "value" in chunk ? [chunk.offset, chunk.value] : [chunk.offset, [chunk.part]];

/** What a reader keeps that drops the parts that start again. */
function kept(chunks: readonly Chunk[]): unknown[] {
  let held: Chunk[] = [];
  for (const chunk of chunks) {
    if ("rewound" in chunk) held = held.filter(({ part }) => part !== chunk.part);
    else held.push(chunk);
  }
  return held.map((chunk) => ("value" in chunk ? chunk.value : undefined));
}

/** A store that notes the order of its fenced writes, and may hold chunks back. */
function traced(s: Stage, onChunks: () => Promise<void> = async () => {}): { store: Store; writes: string[] } {
  const writes: string[] = [];
  const { fenced } = s.store;
  const store: Store = {
    ...s.store,
    fenced: {
      ...fenced,
      async append(fence, entry) {
        writes.push(...entry.records.map(({ kind }) => kind));
        return fenced.append(fence, entry);
      },
      async appendChunks(batch) {
        await onChunks();
        const results = await fenced.appendChunks(batch);
        writes.push("chunks");
        return results;
      },
    },
  };
  return { store, writes };
}

describe("a body that streams", () => {
  it.each(["step", "decide"] as const)("%s: its chunks are stored before its result", async (kind) => {
    const s = await stage();
    const { store, writes } = traced(s);
    const answer = flow((tape) =>
      tape[kind]("answer", async (d: Pick<DecisionContext, "stream">) => {
        const out = d.stream(tokens);
        for (const word of ["to", " be"]) await out.write(word);
        return out.text();
      }),
    );
    const p = s.process([answer], { store });
    const id = await p.start(answer);
    expect((await p.over(id)).outcome).toBe("to be");
    expect(await shown(s.store, id)).toEqual([
      [0, "to"],
      [1, " be"],
    ]); // prettier-ignore
    expect(writes).toEqual(["chunks", kind === "step" ? "step.done" : "decision.made", "run.ended"]);
  });

  it("an inline effect's chunks, and those of a body that throws, are stored before their records", async () => {
    const s = await stage();
    const pay = effect("pay", async (_: null, fx) => void (await fx.stream(tokens).write("paid")), {
      allowUnsafe: "test",
    });
    const { store, writes } = traced(s);
    const run = flow(async (tape) => {
      await tape.effect(pay.with(null));
      await tape.step("bad", async (d) => {
        await d.stream(tokens).write("half");
        throw new Error("no");
      });
    });
    const p = s.process(createRunner({ workflows: [run], effects: [pay] }), { store });
    const id = await p.start(run);
    expect((await p.over(id)).status).toBe("FAILED");
    expect(await shown(s.store, id)).toEqual([
      [0, "paid"],
      [1, "half"],
    ]); // prettier-ignore
    const written = writes.filter((one) => one === "chunks" || one === "effect.settled" || one === "step.done");
    expect(written).toEqual(["chunks", "effect.settled", "chunks", "step.done"]);
  });

  it("emit is the shorthand for the stream parts", async () => {
    const s = await stage();
    const run = flow((tape) => tape.decide("d", async (d) => void (await d.emit({ type: "text", text: "hi" }))));
    const p = s.process([run]);
    const id = await p.start(run);
    await p.over(id);
    expect(await shown(s.store, id, "parts")).toEqual([[0, { type: "text", text: "hi" }]]);
  });

  it("readers see chunks within 50 ms and long before the body ends; journal appends do not wait for them", async () => {
    const s = await stage();
    let release = (): void => {};
    const { store, writes } = traced(s, () => new Promise((resolve) => (release = resolve)));
    let ended = (): void => {};
    const slow = flow((tape) =>
      tape.step("slow", async (d) => {
        await d.stream(tokens).write("a");
        await new Promise<void>((resolve) => (ended = resolve));
      }),
    );
    const other = flow((tape) => tape.step("other", () => 1), "other");
    const p = s.process([slow, other], { store });
    const id = await p.start(slow);
    await settled(3);
    await s.clock.elapse(49);
    expect(await shown(s.store, id)).toEqual([]);
    await s.clock.elapse(2);
    const beside = await p.start(other);
    await settled(5);
    expect(writes).toContain("step.done"); // while the chunks are under way
    expect(await shown(s.store, id)).toEqual([]);
    release();
    await settled(5);
    expect(await shown(s.store, id)).toEqual([[0, "a"]]);
    ended();
    await p.over(id);
    await p.over(beside);
  });

  it("chunks of all runs travel together, at once with 16 KiB", async () => {
    const s = await stage();
    const { store, writes } = traced(s);
    const run = flow((tape, n: number) =>
      tape.step("s", async (d) => {
        await d.stream(tokens).write("x".repeat(n));
        await new Promise(() => {});
      }),
    );
    const p = s.process([run], { store });
    const ids: string[] = [];
    for (let k = 0; k < 20; k++) ids.push(await p.start(run, 850));
    await settled(6);
    expect(writes).toEqual(["chunks"]);
    for (const id of ids) expect(await shown(s.store, id)).toHaveLength(1);
  });

  it("a writer waits only while more than 1 MiB is not stored", async () => {
    const s = await stage();
    let release = (): void => {};
    const { store } = traced(s, () => new Promise((resolve) => (release = resolve)));
    let written = 0;
    const run = flow((tape) =>
      tape.step("s", async (d) => {
        const out = d.stream(tokens);
        for (; written < 24; written++) await out.write("x".repeat(60_000));
      }),
    );
    const p = s.process([run], { store });
    const id = await p.start(run);
    await settled(5);
    expect(written).toBe(17); // 18 times 60 KB are more than 1 MiB
    const all = p.over(id);
    for (let k = 0; k < 20; k++) {
      release();
      await settled(5);
    }
    expect((await all).status).toBe("COMPLETED");
    expect(await shown(s.store, id)).toHaveLength(24);
  });
});

describe("an attempt that is repeated", () => {
  const retried: StepOptions = { retry: { attempts: 3, base: "10ms" } };

  it("within a term rewinds its part, and leaves other parts alone", async () => {
    const s = await stage();
    const run = flow(async (tape) => {
      await tape.step("first", (d) => d.stream(tokens).write("kept"));
      return tape.step(
        "again",
        async (d) => {
          const out = d.stream(tokens);
          await out.write(`try ${d.attempt}`);
          if (d.attempt < 3) throw new Error("429");
          return out.text();
        },
        retried,
      );
    });
    const p = s.process([run]);
    const id = await p.start(run);
    expect((await p.over(id)).outcome).toBe("try 3");
    const all = await shown(s.store, id);
    expect(all).toEqual([
      [0, "kept"],
      [4, [1]],
      [5, "try 3"],
    ]); // prettier-ignore
  });

  it("after a crash continues the offsets, and a live reader keeps what the last attempt wrote", async () => {
    const s = await stage();
    let calls = 0;
    const run = flow(async (tape) => {
      await tape.step("first", (d) => d.stream(tokens).write("kept"));
      await tape.step("again", async (d) => {
        const call = ++calls;
        for (let k = 0; k < 3; k++) await d.stream(tokens).write(`${call}.${k}`);
        if (call === 1) await new Promise(() => {});
      });
    });
    const tails = new StreamTails(s.store, s.clock);
    const seen: Chunk[] = [];
    const dead = s.process([run]);
    const id = await dead.start(run);
    const reading = (async () => {
      const { signal } = new AbortController();
      for await (const page of tails.follow({ tenant, run: id, stream: "tokens", from: 0, signal })) seen.push(...page);
    })();
    await settled(3);
    await s.clock.elapse(60);
    await settled(6);
    dead.crash();
    await s.clock.elapse(40_000);
    const next = s.process([run]);
    await next.over(id);
    await s.clock.elapse(1_100);
    await reading;
    expect(kept(seen)).toEqual(["kept", "2.0", "2.1", "2.2"]);
    expect(seen.map(({ offset }) => offset)).toEqual([...seen.keys()]);
    expect(await shown(s.store, id)).toEqual([
      [0, "kept"],
      [4, [1]],
      [5, "2.0"],
      [6, "2.1"],
      [7, "2.2"],
    ]); // prettier-ignore
    expect(await shown(s.store, id, "tokens", 3)).toHaveLength(4);
  });

  it("a zombie's chunks are refused, and replay writes nothing", async () => {
    const s = await stage();
    let go = (): void => {};
    let calls = 0;
    const run = flow(async (tape) => {
      await tape.step("done", (d) => d.stream(tokens).write("once"));
      await tape.step("s", async (d) => {
        const call = ++calls;
        const out = d.stream(tokens);
        await out.write(`${call}`);
        if (call === 1) {
          await new Promise<void>((resolve) => (go = resolve));
          await out.write("zombie").catch(() => {});
        }
      });
    });
    const paused = s.process([run]);
    const id = await paused.start(run);
    await settled(3);
    await s.clock.elapse(60);
    await s.store.claim.acquire(tenant, {
      ...{ target: { run: id }, claimant: { owner: "o", label: "o", reactor: "recovery", ttlMs: 1 } },
      ...{ nonce: 7n, expect: "any", by: "ann", auditReason: "it hangs" },
    });
    go();
    await settled(5);
    await s.clock.elapse(100);
    await settled(5);
    expect((await shown(s.store, id)).flat()).not.toContain("zombie");
    const next = s.process([run]);
    await next.over(id);
    expect(await shown(s.store, id)).toEqual([
      [0, "once"],
      [2, [1]],
      [3, "2"],
    ]); // prettier-ignore
  });
});

describe("a stream refuses", () => {
  const attempt = async (s: Stage, body: (d: DecisionContext) => Promise<unknown>): Promise<unknown> => {
    const run = flow((tape) => tape.decide("d", body));
    const p = s.process([run]);
    const { outcome } = await p.over(await p.start(run));
    return (outcome as { code?: string } | null)?.code ?? outcome;
  };

  it("chunks that are too large, too many bytes and too many streams", async () => {
    const s = await stage({ limits: { streamBytes: 10, streams: 2 } });
    expect(await attempt(s, (d) => d.stream(tokens).write("x".repeat(65_536)))).toBe("TAPE_TOO_LARGE");
    const long = attempt(s, async (d) => {
      await d.stream(tokens).write("12345678");
      await d.stream(tokens).write("9");
    });
    expect(await long).toBe("TAPE_TOO_LARGE");
    const many = attempt(s, async (d) => {
      for (const name of ["a", "b", "c"]) await d.stream(stream(name)).write(1);
    });
    expect(await many).toBe("TAPE_TOO_LARGE");
  });

  it("what cannot be stored, text of other values, and a definition without a name", async () => {
    const s = await stage();
    expect(await attempt(s, (d) => d.stream(stream("s")).write(() => 1))).toBe("TAPE_NOT_ENCODABLE");
    expect(await attempt(s, async (d) => d.stream(stream("n")).text())).toBe("");
    const numbers = attempt(s, async (d) => {
      const out = d.stream(stream<number>("n"));
      await out.write(1);
      return out.text();
    });
    expect(await numbers).toBe("TAPE_BAD_INPUT");
    expect(await attempt(s, async (d) => d.stream({} as never))).toBe("TAPE_BAD_INPUT");
    expect(() => stream("")).toThrow(/TAPE_BAD_INPUT/);
    expect(() => stream("s", { retain: "soon" as never })).toThrow(/not a duration/);
    expect(() => stream("s", { keep: 1 } as never)).toThrow(/no option keep/);
  });

  it("writes after the body has ended", async () => {
    const s = await stage();
    let late: Promise<void> | undefined;
    const run = flow(async (tape) => {
      let out: { write(value: string): Promise<void> } | undefined;
      await tape.step("s", (d) => {
        out = d.stream(tokens);
      });
      late = out!.write("late");
      await late.catch(() => {});
      return 1;
    });
    const p = s.process([run]);
    const id = await p.start(run);
    await p.over(id);
    await expect(late).rejects.toThrow(/TAPE_STREAM_CLOSED/);
    expect((await s.store.read.streams(tenant, id)).length).toBe(0);
  });
});

it("a run that streams nothing reads and writes nothing for it", async () => {
  const s = await stage();
  const calls: string[] = [];
  const spy = <G extends object>(group: G): G =>
    new Proxy(group, {
      get(target, key) {
        calls.push(String(key));
        return Reflect.get(target, key) as unknown;
      },
    });
  const store: Store = { ...s.store, read: spy(s.store.read), fenced: spy(s.store.fenced) };
  const run = flow((tape) => tape.step("s", () => 1));
  const p = s.process([run], { store });
  await p.over(await p.start(run));
  expect(calls.filter((call) => /chunk|stream/i.test(call))).toEqual([]);
});
