import type { DatabaseSync } from "node:sqlite";
import { createRunner, stream, workflow } from "../../src/exports/index.ts";
import { any, type Program } from "./program.ts";

/** Operations that reach no other system: steps, decisions, samples, lanes, races, sleeps, streams, transactions. */

const steps: Program = {
  name: "steps",
  input: { n: 3 },
  build() {
    const flow = workflow("steps", async (tape, input: { n: number }) => {
      const id = tape.uuid();
      const started = tape.now();
      const chance = tape.random();
      const first = await tape.step("first", () => ({
        id,
        chance,
        started,
        big: 2n ** 70n,
        at: new Date(0),
        n: input.n,
      }));
      const second = await tape.step(
        "second",
        ({ attempt }) => {
          if (attempt < 3) throw new Error(`attempt ${attempt}`);
          return attempt;
        },
        { retry: { attempts: 3, base: "1s" } },
      );
      const refused = await tape
        .step("refused", () => {
          throw new TypeError("no such thing");
        })
        .catch((error: unknown) => (error instanceof TypeError ? error.message : "another class"));
      const sampled = await tape.sample("sampled", () => "a sample");
      const patched = tape.patched("since-2026");
      const version = await tape.values.put("setting", { on: true }, 0).catch(() => -1);
      const found = await tape.values.get("setting");
      tape.publish("progress", { done: 1 });
      const [left, right] = await Promise.all([tape.step("left", () => "l"), tape.step("right", async () => "r")]);
      tape.publish("progress", { done: 2 });
      const same = first.id === id && first.chance === chance && first.started === started && tape.now() >= started;
      const last = await tape.step("last", () => `${left}${right}${first.big}${first.at.toISOString()}`);
      return { same, second, refused, sampled, patched, version, found, last };
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow] }) };
  },
};

const decisions: Program = {
  name: "decisions",
  build() {
    const tokens = stream<string>("tokens");
    const flow = workflow("decisions", async (tape) => {
      const plan = await tape.decide("plan", async ({ record, stream: open, emit }) => {
        const out = open(tokens);
        for (const word of ["pay ", "the ", "invoice"]) await out.write(word);
        await emit({ type: "text", text: "pay the invoice" });
        record({
          model: "local/scripted",
          request: { prompt: "?" },
          rationale: "it is due",
          usage: { input: 3, output: 2 },
        });
        return out.text();
      });
      const large = await tape.decide("large", ({ record }) => {
        record({ response: { image: "pixel ".repeat(20_000) } });
        return Buffer.alloc(120_000, "tree ");
      });
      const retried = await tape.decide(
        "retried",
        ({ attempt }) => {
          if (attempt === 1) throw new Error("overloaded");
          return "at the second attempt";
        },
        { retry: { attempts: 2, base: "500ms" } },
      );
      const streamed = await tape.step("streamed", async ({ stream: open }) => {
        const out = open(tokens);
        await out.write("more");
        return out.text();
      });
      return { plan, size: large.byteLength, end: String(Buffer.from(large.subarray(0, 5))), retried, streamed };
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow] }) };
  },
};

const branches: Program = {
  name: "branches",
  build() {
    const flow = workflow("branches", async (tape) => {
      const lanes = await Promise.all(
        ["north", "south"].map((shop) =>
          tape.lane(shop, async (inner) => {
            const page = await inner.step(`load ${shop}`, () => `page of ${shop}`);
            if (shop === "north") await inner.sleep("2s");
            return inner.decide(`pick ${shop}`, () => `${page}: 7`);
          }),
        ),
      );
      const won = await tape.race([
        (inner) => inner.sleep("30s").then(() => "slow"),
        (inner) => inner.step("quick", () => "quick"),
      ]);
      const found = await tape.any([
        tape.step("fails", () => {
          throw new Error("not here");
        }),
        tape.step("finds", () => "here"),
      ]);
      await tape.sleep("1m");
      const after = await tape.step("after", () => "after a minute");
      await tape.sleepUntil(new Date(0));
      return { lanes, won, found, after, last: await tape.step("end", () => "end") };
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow] }) };
  },
};

/** The run throws twice, after work that it keeps, and cleans up each time. */
const retries: Program = {
  name: "retries",
  build(world) {
    const flow = workflow(
      "retries",
      async (tape) => {
        const kept = await tape.step("kept", () => "kept");
        try {
          return await tape.step("fragile", () => {
            world.add({ kind: "try", subject: "fragile" });
            if (world.entries().filter(({ kind }) => kind === "try").length < 3) throw new Error("not yet");
            return { kept, done: true };
          });
        } finally {
          await tape.step("clean up", () => "clean");
        }
      },
      { retry: { attempts: 5, base: "10s" } },
    );
    return { workflow: any(flow), runner: createRunner({ workflows: [flow] }) };
  },
};

const failing: Program = {
  name: "failing",
  build() {
    const flow = workflow("failing", async (tape) => {
      await tape.step("fine", () => "fine");
      await tape.step("final", () => {
        throw new RangeError("out of range");
      });
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow] }) };
  },
};

const transactions: Program = {
  name: "transactions",
  sqliteOnly: true,
  build(_, database) {
    const seats = database as DatabaseSync;
    const flow = workflow("transactions", async (tape) => {
      const take = (seat: string) =>
        tape.transaction(`take ${seat}`, seats, (db) => {
          db.exec("create table if not exists golden_seats(run text, seat text)");
          db.prepare("insert into golden_seats values (?, ?)").run(tape.runId, seat);
          return `got ${seat}`;
        });
      const first = await take("1A");
      await tape.sleep("5s");
      return { first, second: await take("1B") };
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow] }) };
  },
};

export const localPrograms: readonly Program[] = [steps, decisions, branches, retries, failing, transactions];
