import { addOnce, findEntry, type Ledger } from "../../examples/ledger.ts";
import {
  AckLost,
  createRunner,
  DefiniteFailure,
  effect,
  gate,
  NotSent,
  outcome,
  workflow,
} from "../../src/exports/index.ts";
import { any, atGate, liveRun, type Program, runId } from "./program.ts";

/** Effects in every outcome: confirmed, refused, not sent, in doubt, observed, compensated, resolved by an operator. */

const pause = gate<string>("pause");

/** The first call of each subject behaves as its name says. */
function upstream(world: Ledger) {
  const calls = (kind: string, subject: string): number =>
    world.entries().filter((entry) => entry.kind === kind && entry.subject === subject).length;
  const post = effect(
    "post",
    (subject: string, fx) => {
      addOnce(world, { kind: "post", subject, key: fx.key });
      return `posted ${subject}`;
    },
    { semantics: "idempotent", retry: { attempts: 3 } },
  );
  const fetched = effect("fetch", (subject: string) => `read ${subject}`, { semantics: "read" });
  const wire = effect(
    "wire",
    (subject: string) => {
      world.add({ kind: "call", subject });
      if (subject === "refused") throw new DefiniteFailure("the account is closed");
      if (subject === "not-sent" && calls("call", subject) === 1) throw new NotSent("no route");
      if (subject === "vanished" && calls("call", subject) === 1) throw new AckLost("it never arrived");
      world.add({ kind: "wire", subject });
      if (subject === "lost") throw new AckLost("the response was lost");
      return { receipt: `R-${subject}` };
    },
    {
      businessKey: (subject) => subject,
      settleDelay: "5s",
      timeout: "5s",
      retry: { attempts: 3, base: "1s" },
      observe: (subject) =>
        findEntry(world, "wire", subject) ? outcome.confirmed({ receipt: `R-${subject}` }) : outcome.absent(),
      compensate: {
        semantics: "idempotent",
        run: (subject, _, fx) => addOnce(world, { kind: "reverse", subject, key: fx.key }),
      },
    },
  );
  const letter = effect(
    "letter",
    (subject: string, fx) => {
      addOnce(world, { kind: "letter", subject, key: fx.key });
      return `sent ${subject}`;
    },
    { semantics: "idempotent", dispatch: "outbox" },
  );
  const blind = effect(
    "blind",
    (subject: string) => {
      world.add({ kind: "blind", subject });
      throw new AckLost();
    },
    { allowUnsafe: "an operator resolves it" },
  );
  return { post, fetched, wire, letter, blind, all: [post, fetched, wire, letter, blind] };
}

const effects: Program = {
  name: "effects",
  build(world) {
    const { post, fetched, wire, letter, all } = upstream(world);
    const flow = workflow("effects", async (tape) => {
      const posted = await tape.effect(post.with("a"));
      const read = await tape.effect(fetched.with("b"));
      const wired = await tape.effect(wire.with("c"));
      const refused = await tape.attempt(wire.with("refused"));
      const late = await tape.effect(wire.with("not-sent"));
      const observed = await tape.effect(wire.with("lost"));
      const again = await tape.effect(wire.with("vanished"));
      const mailed = await tape.effect(letter.with("d"));
      return { posted, read, wired, refused: refused.status, late, observed, again, mailed };
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow], effects: all }) };
  },
};

const compensated: Program = {
  name: "compensated",
  build(world) {
    const { wire, letter, all } = upstream(world);
    const flow = workflow("compensated", async (tape) => {
      await tape.effect(wire.with("one"));
      await Promise.all([tape.effect(wire.with("two")), tape.effect(letter.with("note"))]);
      await tape.step("check", () => {
        throw new Error("the totals differ");
      });
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow], effects: all }) };
  },
};

const cancelled: Program = {
  name: "cancelled",
  build(world) {
    const { wire, all } = upstream(world);
    const flow = workflow("cancelled", async (tape) => {
      await tape.effect(wire.with("one"));
      await tape.gate(pause);
      return "never";
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow], effects: all }) };
  },
  client: (around) =>
    atGate(around, "pause", (_, run) => around.app.cancel(run, { reason: "no longer needed", by: "ada" })),
};

const cancelledEarly: Program = {
  name: "cancelled-early",
  start: { delay: "1h", labels: { team: "red" } },
  build() {
    const flow = workflow("cancelled-early", async (tape) => tape.step("never", () => "never"));
    return { workflow: any(flow), runner: createRunner({ workflows: [flow] }) };
  },
  client(around) {
    if (around.later && liveRun(around)) around.once("cancel", () => around.app.cancel(runId, { reason: "too late" }));
  },
};

/** STUCK on an effect in doubt until an operator resolves it: before the snapshot, or only afterwards. */
const resolved = (name: string, when: { readonly later: boolean }): Program => ({
  name,
  build(world) {
    const { blind, post, all } = upstream(world);
    const flow = workflow(name, async (tape) => {
      const posted = await tape.effect(post.with("before"));
      const receipt = await tape.effect(blind.with("payment"));
      return { posted, receipt, after: await tape.step("after", () => "after") };
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow], effects: all }) };
  },
  async client(around) {
    if (when.later && !around.later) return;
    const open = (await around.app.effects.list({ run: runId })).find((one) => one.name === "blind");
    if (open?.status !== "UNKNOWN" && open?.status !== "STUCK") return;
    const resolution = { as: "confirmed", value: "seen at the bank" } as const;
    around.once("resolve", () =>
      around.app.resolve({ run: runId, pos: open.pos, resolution, by: "ada", reason: "I called the bank" }),
    );
  },
});

/** An observation finds a payment twice: the surplus one is compensated. An operator has the other one reversed, too. */
const surplus: Program = {
  name: "surplus",
  build(world) {
    const pay = effect(
      "pay",
      (subject: string) => {
        world.add({ kind: "pay", subject });
        throw new AckLost();
      },
      {
        timeout: "5s",
        settleDelay: "5s",
        observe: () => outcome.duplicate("paid twice", ["the second one"]),
        compensate: {
          semantics: "idempotent",
          run: (subject, result, fx) =>
            addOnce(world, { kind: "repay", subject: `${subject} ${String(result)}`, key: fx.key }),
        },
      },
    );
    const flow = workflow("surplus", async (tape) => {
      const paid = await tape.effect(pay.with("rent"));
      await tape.gate(pause);
      return { paid, booked: await tape.step("book", () => "booked") };
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow], effects: [pay] }) };
  },
  async client(around) {
    const paid = (await around.app.effects.list({ run: runId })).find(({ name }) => name === "pay");
    if (paid === undefined) return;
    const request = { run: runId, pos: paid.pos, by: "ada", reason: "the rent was not due" };
    await atGate(around, "pause", async (_, run) => {
      if (paid.status === "CONFIRMED") await around.app.resolve({ ...request, resolution: { as: "compensate" } });
      await around.app.signal(run, pause, "continue", { key: "pause" });
    });
  },
};

/** An outage that outlasts the step's patience: STUCK, until the snapshot's successor redrives it. */
const outage: Program = {
  name: "outage",
  build(world) {
    const flow = workflow("outage", async (tape) => {
      await tape.step("before", () => "before");
      return tape.step(
        "model",
        () => {
          if (findEntry(world, "repaired", "model") === undefined) throw new Error("503");
          return "answered";
        },
        { retry: { attempts: 2, base: "1s", giveUpAfter: "5m" } },
      );
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow] }) };
  },
  client(around) {
    if (!around.later) return;
    if (findEntry(around.world, "repaired", "model") === undefined)
      around.world.add({ kind: "repaired", subject: "model" });
    if (liveRun(around)?.status === "STUCK")
      around.once("redrive", () => around.app.redrive(runId, { by: "ada", reason: "the model is back" }));
  },
};

export const effectPrograms: readonly Program[] = [
  cancelledEarly,
  outage,
  effects,
  compensated,
  cancelled,
  resolved("resolved", { later: false }),
  resolved("resolved-later", { later: true }),
  surplus,
];
