import { describe, expect, it, onTestFinished } from "vitest";
import { loadFunction, loadRunner } from "../../src/cli/reactors/module.ts";
import { parseOptions } from "../../src/cli/reactors/options.ts";
import { configSchema } from "../../src/config/schema.ts";
import { startReactors } from "../../src/host/reactors.ts";
import { Tape } from "../../src/host/tape.ts";
import { calm, setStage, signal, tenant, waiting } from "../reactor/stage.ts";
import { library, project } from "./sidecar.ts";

describe("a module named file#export", () => {
  const source = `
import { createRunner } from ${library};
export const buildRunner = () => createRunner({ workflows: [] });
export const later = async () => createRunner({ workflows: [] });
export const notARunner = () => ({ workflows: [] });
export const nothing = () => undefined;
export const thrower = () => { throw new Error("no such bank"); };
export const twice = () => createRunner({ workflows: [{ name: "a" }, { name: "a" }] });
export const five = 5;
`;
  const folder = () => project({ "agent.ts": source, "broken.ts": 'import "./gone.ts";', "bare.ts": "" });

  it("builds a runner, synchronously or asynchronously", async () => {
    const cwd = folder();
    for (const name of ["buildRunner", "later"]) {
      expect((await loadRunner(`./agent.ts#${name}`, cwd)).workflows.size).toBe(0);
    }
  });

  it.each([
    ["./agnt.ts#buildRunner", "TAPE_BAD_MODULE", /file .*agnt\.ts not found/],
    ["./agent.ts#buildRuner", "TAPE_BAD_MODULE", /does not export buildRuner; did you mean buildRunner\?/],
    ["./bare.ts#buildRunner", "TAPE_BAD_MODULE", /does not export buildRunner; it has no exports/],
    ["./agent.ts#five", "TAPE_BAD_MODULE", /five is not a function/],
    ["./agent.ts#notARunner", "TAPE_BAD_MODULE", /did not return a runner/],
    ["./agent.ts#nothing", "TAPE_BAD_MODULE", /did not return a runner/],
    ["./agent.ts#thrower", "TAPE_BAD_MODULE", /it threw an error: no such bank/],
    ["./agent.ts#twice", "TAPE_BAD_INPUT", /two workflows have the name a/],
    ["./broken.ts#buildRunner", "TAPE_BAD_MODULE", /cannot be loaded: .*gone\.ts/],
    ["./agent.ts", "TAPE_BAD_MODULE", /must be FILE#EXPORT/],
    ["./agent.ts#", "TAPE_BAD_MODULE", /must be FILE#EXPORT/],
    ["#buildRunner", "TAPE_BAD_MODULE", /must be FILE#EXPORT/],
  ])("rejects %s", async (reference, code, message) => {
    const loading = loadRunner(reference, folder());
    await expect(loading).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  });

  it("loads the dotted form: a file by its dots, an export as written or in camel case", async () => {
    const cwd = project({ "app/agent.ts": source, "app/plain.mjs": "export const build_it = () => 7;" });
    expect((await loadRunner("app.agent:build_runner", cwd)).workflows.size).toBe(0);
    expect((await loadRunner("app.agent:later", cwd)).workflows.size).toBe(0);
    expect((await loadFunction("app.plain:build_it", cwd, "handler"))()).toBe(7);
  });

  it.each([
    ["app.agnt:build_runner", /file .*agnt\.ts or .*agnt\.mts or .* not found/],
    ["agent:build_runer", /does not export build_runer or buildRuner; did you mean buildRunner\?/],
    ["agent:five", /five is not a function/],
    ["agent", /must be FILE#EXPORT or MODULE:EXPORT/],
  ])("rejects %s, and names the flag that was written", async (reference, message) => {
    const loading = loadRunner(reference, folder(), "--runner-from");
    await expect(loading).rejects.toMatchObject({ code: "TAPE_BAD_MODULE", message: expect.stringMatching(message) });
    await expect(loading).rejects.toThrow(/--runner-from: runner factory/);
  });

  it("names the module in the error", async () => {
    const loading = loadFunction("./x.ts#y", folder(), "handler of mine");
    await expect(loading).rejects.toThrow(/handler of mine \.\/x\.ts#y/);
  });
});

describe("parseOptions", () => {
  it("maps options to settings", () => {
    expect(parseOptions(["--runner-from", "a#b", "--only", "outbox, timers", "--set", "tape.tenant=a=b"])).toEqual({
      config: undefined,
      only: ["outbox", "timers"],
      announce: false,
      flags: [
        { path: "tape.tenant", text: "a=b", flag: "--set tape.tenant" },
        { path: "agent.runner_factory", text: "a#b", flag: "--runner-from" },
      ],
    });
  });

  it.each([[["--set", "tape.tenant"]], [["--only", "a,,b"]], [["--nothing"]], [["word"]], [["--config"]]])(
    "rejects %j",
    (argv) => expect(parseOptions(argv)).toEqual({ fault: expect.any(String) }),
  );
});

it("gives each reactor the lease of its settings", async () => {
  const stage = await setStage();
  const { store, clock } = stage;
  const response = signal<string>();
  const deps = stage.replica({ effects: [stage.wire({ timeout: "10m" }, () => response.come)] });
  const { reactors } = configSchema.parse({
    tape: { reactors: { outbox: { lease_ttl_s: 9, heartbeat_s: 2 }, reconciler: { lease_ttl_s: 60 } } },
  }).tape;
  const app = await Tape.open({ store, runner: deps.runner, tenant, clock, work: false });
  onTestFinished(() => app.close());
  const specs = [
    { name: "outbox", settings: reactors.outbox },
    { name: "reconciler", settings: reactors.reconciler },
    { name: "recovery", settings: reactors.recovery },
  ];
  const { identity } = deps.keeper;
  const running = startReactors({ specs, deps, driver: { patienceMs: 60_000, slowMs: 10_000 }, drainMs: 1_000 });
  const run = await waiting(store);
  await calm();
  const { item } = await run.effect(0);
  const lease = () => store.read.lease(tenant, { journal: item! });
  expect(await lease()).toMatchObject({ ttlMs: 9_000, reactor: "outbox", owner: identity.owner });
  await clock.elapse(2_100);
  expect((await lease())?.remainingMs).toBeGreaterThan(7_000); // renewed after 2 s; a third of the lease would be 3 s
  response.give("sent");
  await calm();
  await running.stop();
  expect(await store.read.leases(tenant, { held: true })).toEqual([]);
  expect((await run.effect(0)).status).toBe("CONFIRMED");
});
