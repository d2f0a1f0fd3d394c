import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { humanLog } from "../../src/base/log.ts";
import { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import type { Schema } from "../../src/sdk/schema.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { program, temporaryFolder } from "../cli/stage.ts";

/**
 * Common mistakes of newcomers. Each produces, within a second, one line with a stable code and the next step. Options
 * are in options.test.ts. Nested operations and unregistered effects have their own tests in test/engine.
 */

// biome-ignore lint/suspicious/noExplicitAny: as plain JavaScript, without type checks
type Loose = any;
const flow = workflow("flow", async (tape) => tape.step("s", () => 1));
const runner = createRunner({ workflows: [flow] });
const numbers: Schema<number> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) => (typeof value === "number" ? { value } : { issues: [{ message: "is a number" }] }),
  },
};

let lines: string[] = [];
let app: Tape | undefined;
const log = humanLog((line) => void lines.push(line));
const opened = async (parts: Loose): Promise<Tape> => {
  app = await Tape.open({ store: "memory:", runner: createRunner(parts), log });
  return app;
};
beforeEach(() => {
  lines = [];
});
afterEach(async () => {
  await app?.close();
  app = undefined;
});

/** The line that Node prints for an uncaught error contains the code and, next to it, the next step. */
async function printed(call: () => unknown): Promise<string> {
  const error = await Promise.resolve()
    .then(call)
    .then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
  return inspect(error, { customInspect: false });
}

describe("a thrown error names its code and the next step", () => {
  it.each<[string, RegExp, () => unknown]>([
    ["no store", /TAPE_BAD_INPUT: Tape\.open: store is a URL/, () => Tape.open({ runner } as Loose)],
    ["no runner", /TAPE_BAD_INPUT: Tape\.open: runner/, () => Tape.open({ store: "memory:" } as Loose)],
    [
      "a slip in an option",
      /did you mean tenant\?/,
      () => Tape.open({ store: "memory:", runner, tennant: "x" } as Loose),
    ],
    [
      "room for nothing",
      /concurrency is a whole number/,
      () => Tape.open({ store: "memory:", runner, concurrency: 0 }),
    ],
    [
      "a duration that is not one",
      /did you mean "10m"\?/,
      () => Tape.open({ store: "memory:", runner, leaseTtl: "10 mins" } as Loose),
    ],
    ["no such scheme", /TAPE_BAD_STORE_URL: .*did you mean sqlite/, () => Tape.open({ store: "sqlit:./x.db", runner })],
    ["an endless retry", /retry\.attempts/, () => workflow("w", async () => {}, { retry: { attempts: Number.NaN } })],
    ["an effect that cannot be observed", /TAPE_UNSAFE_EFFECT/, () => effect("x", () => 1)],
    ["an effect outside of a run", /TAPE_NO_RUN/, () => effect("x", () => 1, { semantics: "read" })(1)],
    ["two of one name", /two workflows have the name flow/, () => createRunner({ workflows: [flow, flow] })],
    [
      "an unknown run",
      /TAPE_RUN_NOT_FOUND: run nobody not found/,
      async () => (await opened({ workflows: [flow] })).run("nobody"),
    ],
    [
      "a workflow by name",
      /TAPE_BAD_INPUT: a workflow is what/,
      async () => (await opened({ workflows: [flow] })).start("flow" as Loose, 1),
    ],
    [
      "a bad input",
      /TAPE_BAD_INPUT: input of w: is a number/,
      async () => {
        const w = workflow("w", async () => {}, { input: numbers });
        return (await opened({ workflows: [w] })).start(w, "x" as Loose);
      },
    ],
    [
      "a bad signal",
      /TAPE_BAD_GATE_VALUE: g: is a number/,
      async () => {
        await (await opened({ workflows: [flow] })).start(flow, undefined, { id: "r" });
        return app!.signal("r", gate("g", { schema: numbers }), "x" as Loose);
      },
    ],
    [
      "a run that failed",
      /TAPE_RUN_FAILED: run r ended as FAILED: Error: no money/,
      async () => {
        const w = workflow("w", async () => Promise.reject(new Error("no money")));
        return (await (await opened({ workflows: [w] })).start(w, undefined, { id: "r" })).result();
      },
    ],
    [
      "a result that cannot be kept",
      /TAPE_NOT_ENCODABLE.*a function cannot be stored/s,
      async () => {
        const w = workflow("w", async (tape) => tape.step("s", () => () => 1));
        return (await (await opened({ workflows: [w] })).start(w, undefined)).result();
      },
    ],
    [
      "an operation inside another",
      /TAPE_NESTED.*inner.*outer/s,
      async () => {
        const w = workflow("w", async (tape) => tape.step("outer", () => tape.step("inner", () => 1)));
        return (await (await opened({ workflows: [w] })).start(w, undefined)).result();
      },
    ],
    [
      "a file as a host",
      /sqlite:\/\/tape\.db would name a host: write sqlite:\.\/tape\.db/,
      () => Tape.open({ store: "sqlite://tape.db", runner }),
    ],
    [
      "a folder that is not there",
      /TAPE_BAD_STORE_URL: the folder \/nowhere\/none does not exist: create it first/,
      () => Tape.open({ store: "sqlite:/nowhere/none/tape.db", runner }),
    ],
    ["a slip in a gate's option", /did you mean schema\?/, () => gate("g", { schma: numbers } as Loose)],
    [
      "a status that there is not",
      /status is (one of )?"?QUEUED/,
      async () => (await opened({ workflows: [flow] })).runs.list({ status: ["DONE"] } as Loose),
    ],
    [
      "a step without a body",
      /TAPE_/,
      async () => {
        const w = workflow("w", async (tape) => (tape as Loose).step("s"));
        return (await (await opened({ workflows: [w] })).start(w, undefined)).result();
      },
    ],
    [
      "a gate by its name",
      /gate needs a name/,
      async () => {
        const w = workflow("w", async (tape) => (tape as Loose).gate("boss"));
        return (await (await opened({ workflows: [w] })).start(w, undefined)).result();
      },
    ],
  ])("%s", async (_what, pattern, mistake) => {
    const startedAt = performance.now();
    const text = await printed(mistake);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    expect(text).toMatch(pattern);
    expect(text).toMatch(/code: 'TAPE_\w+'/);
    expect(text).toMatch(/next: ['"]/);
  });
});

describe("a failure without an error for the caller is one line on stderr", () => {
  const line = async (pattern: RegExp): Promise<string> => {
    await vi.waitFor(() => expect(lines.join("")).toMatch(pattern), { timeout: 3_000 });
    return lines.find((one) => pattern.test(one))!;
  };

  it("a workflow that no process has", async () => {
    await (await opened({ workflows: [flow] })).start(
      workflow("flwo", async () => 1),
      undefined,
    );
    expect(await line(/run\.unserved/)).toMatch(/code=TAPE_NO_WORKER.*did you mean flow\?.*cancel it/);
  });

  it("a step that is not awaited", async () => {
    const w = workflow("w", async (tape) => {
      void tape.step("lost", () => new Promise(() => {}));
      return 1;
    });
    await (await (await opened({ workflows: [w] })).start(w, undefined)).result();
    expect(await line(/run\.not_awaited/)).toMatch(/TAPE_RUN_ENDED.*lost.*Next: /);
  });

  it("an effect that the runner does not have", async () => {
    const lookup = effect("lookup", () => 1, { semantics: "read" });
    const w = workflow("w", async () => lookup(1));
    await (await (await opened({ workflows: [w] })).start(w, undefined, { id: "r" })).result();
    expect(await line(/effect\.unregistered/)).toMatch(
      /run=r effect=lookup.*TAPE_EFFECT_UNREGISTERED.*Next: .*effects/,
    );
  });

  it("a step that throws, and the run with it", async () => {
    const w = workflow("w", async (tape) => tape.step("charge", () => Promise.reject(new Error("card expired"))));
    await (await opened({ workflows: [w] })).start(w, undefined, { id: "r" });
    expect(await line(/step\.failed/)).toMatch(/run=r step=charge pos=0: Error: card expired\n$/);
    expect(await line(/run\.failed/)).toMatch(/code=TAPE_RUN_FAILED: Error: card expired Next: durable-tape inspect r/);
  });

  it("a lost response", async () => {
    const wire = effect("wire", () => Promise.reject(new Error("reset")), { allowUnsafe: "a test" });
    const w = workflow("w", async () => wire(1));
    await (await opened({ workflows: [w], effects: [wire] })).start(w, undefined, { id: "r" });
    expect(await line(/effect\.unknown/)).toMatch(/effect=wire.*Error: reset Next: The reconciler observes it/);
  });

  it("a signal that does not fit", async () => {
    const w = workflow("w", async (tape) => tape.gate(gate("g", { schema: numbers })));
    await (await opened({ workflows: [w] })).start(w, undefined, { id: "r" });
    await app!.store.intake.signal("default", "r", { name: "g", value: "x" });
    expect(await line(/signal\.refused/)).toMatch(/code=TAPE_BAD_GATE_VALUE: is a number Next: Send another signal/);
  });
});

describe("on the command line", () => {
  it.each<[string, number, RegExp, string[]]>([
    ["a command that there is not", 2, /unknown command rnus; did you mean runs\?\nRun durable-tape --help/, ["rnus"]],
    [
      "a status that there is not",
      2,
      /--status must be one of QUEUED, RUNNABLE, .*COMPENSATED, not DONE\n/,
      ["runs", "--status", "DONE", "--store", "STORE"],
    ],
    [
      "a slip in a status",
      2,
      /not compleetd; did you mean COMPLETED\?/,
      ["runs", "--status", "compleetd", "--store", "STORE"],
    ],
    [
      "an effect's status",
      2,
      /--status must be one of PENDING.*did you mean UNKNOWN/,
      ["effects", "--status", "UNKOWN", "--store", "STORE"],
    ],
    [
      "a file that is not there",
      1,
      /TAPE_STORE_UNREACHABLE: file .* not found/,
      ["runs", "--store", "sqlite:/nowhere/none.db"],
    ],
    ["no reason", 2, /--reason is required/, ["cancel", "r", "--store", "STORE"]],
    [
      "an input that is no JSON",
      2,
      /--input is not valid JSON: \{a:1\}/,
      ["start", "w", "--input", "{a:1}", "--store", "STORE"],
    ],
    [
      "a workflow that no process has",
      0,
      /TAPE_NO_WORKER: no running process has reported the workflow w/,
      ["start", "w", "--store", "STORE"],
    ],
  ])("%s", async (_what, code, pattern, args) => {
    const store = `sqlite:${join(await temporaryFolder(), "tape.db")}`;
    await program("migrate", "--store", store);
    const output = await program(...args.map((arg) => (arg === "STORE" ? store : arg)));
    expect(output).toMatchObject({ code });
    expect(output.stderr).toMatch(pattern);
    // The code and the mistake, then the next step.
    expect(output.stderr).toMatch(code === 0 ? /^TAPE_\w+: .+ or cancel it\.\n$/ : /^TAPE_\w+: .+\n.+\n$/);
  });

  it("resolve --help, and --help after any command group, lists the subcommands", async () => {
    for (const group of ["resolve", "lease", "token"]) {
      const output = await program(group, "--help");
      expect(output).toMatchObject({ code: 0, stderr: "" });
      expect(output.stdout).toContain(`durable-tape ${group} `);
    }
  });

  it("with a runner factory, inputs and signals are refused before anything is written", async () => {
    const folder = await temporaryFolder();
    const library = JSON.stringify(resolve(import.meta.dirname, "../../src/exports/index.ts"));
    const schema = `{ "~standard": { version: 1, vendor: "t", validate: (v) => typeof v === "number" ? { value: v } : { issues: [{ message: "is a number" }] } } }`;
    const agent = `import { createRunner, gate, workflow } from ${library};\nconst schema = ${schema};\nexport const buildRunner = () => createRunner({ workflows: [workflow("pay", async () => 1, { input: schema })], gates: [gate("cfo", { schema })] });\n`;
    writeFileSync(join(folder, "agent.mjs"), agent);
    writeFileSync(
      join(folder, "tape.yaml"),
      'agent: { runner_factory: ./agent.mjs#buildRunner }\ntape: { store: { url: "sqlite:./tape.db" } }\n',
    );
    const cwd = vi.spyOn(process, "cwd").mockReturnValue(folder);
    try {
      const bad = await program("start", "pay", "--input", '"much"', "--id", "r");
      expect(bad).toMatchObject({ code: 1 });
      expect(bad.stderr).toContain("TAPE_BAD_INPUT: input of pay: is a number");
      expect((await program("runs")).stdout).toContain("no runs match");
      expect(await program("start", "pay", "--input", "3", "--id", "r")).toMatchObject({ code: 0 });
      const signal = await program("signal", "r", "cfo", "--value", '"yes"');
      expect(signal).toMatchObject({ code: 1 });
      expect(signal.stderr).toContain("TAPE_BAD_GATE_VALUE: cfo: is a number");
      expect((await program("cancel", "r", "--reason", "a slip")).stdout).toBe("r: CANCELLED\n");
    } finally {
      cwd.mockRestore();
    }
  });
});

it("Node itself prints the code and next step of an uncaught error", async () => {
  const library = JSON.stringify(resolve(import.meta.dirname, "../../src/exports/index.ts"));
  const script = `import { Tape } from ${library}; await Tape.open({ store: undefined });`;
  const { stderr, status } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  expect(status).toBe(1);
  expect(stderr).toMatch(/TAPE_BAD_INPUT: Tape\.open: store is a URL/);
  expect(stderr).toMatch(/next: 'Correct the named field; nothing was written\.'/);
});
