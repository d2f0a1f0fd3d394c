import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { type RunningServer, serve } from "../../src/host/serve.ts";
import { Tape } from "../../src/host/tape.ts";
import { type ErrorCode, isTapeError } from "../../src/model/errors.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";

/** As plain JavaScript calls them, without type checks. */
const hello = workflow("hello", async (tape, name: string) => tape.step("greet", () => `hello ${name}`));
const runner = createRunner({ workflows: [hello] });
const open = Tape.open as unknown as (options: unknown) => Promise<Tape>;
const connect = Tape.connect as unknown as (...args: unknown[]) => Promise<Tape>;
const plainWorkflow = workflow as unknown as (...args: unknown[]) => unknown;
const plainGate = gate as unknown as (...args: unknown[]) => unknown;

const folder = mkdtempSync(join(tmpdir(), "options-"));
const store = `sqlite:${join(folder, "tape.db")}`;
afterAll(() => rmSync(folder, { recursive: true }));

async function refused(pattern: RegExp, call: () => unknown, code: ErrorCode = "TAPE_BAD_INPUT"): Promise<void> {
  const error = await Promise.resolve()
    .then(call)
    .then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
  expect(isTapeError(error, code), `${String(error)} is not ${code}`).toBe(true);
  expect(String(error)).toMatch(pattern);
}

describe("serve refuses, and listens to nothing", () => {
  const listen = serve as unknown as (options: unknown) => Promise<RunningServer>;
  it.each<[string, RegExp, object | undefined]>([
    ["no options at all", /not an object, but undefined/, undefined],
    ["a mistyped key", /no option credential; did you mean credentials\?/, { credential: "required" }],
    [
      "an unknown setting of credentials",
      /credentials is required or none, not require; did you mean/,
      { credentials: "require" },
    ],
    ["an unknown setting of plain", /plain is refused or accepted, not yes/, { plain: "yes" }],
    ["a port of text", /port is a whole number from 0 to 65535, not "7878"/, { port: "7878" }],
    ["an empty tenant", /tenant needs a name/, { tenant: "" }],
    ["a limit of NaN", /limits\.requests is a number above 0, not NaN/, { limits: { requests: Number.NaN } }],
    ["a mistyped limit", /limits has no option request; did you mean requests\?/, { limits: { request: 7 } }],
    ["a time-out of none", /timeouts\.idleMs is a number above 0, not 0/, { timeouts: { idleMs: 0 } }],
    ["a lifetime that is text", /lifetimes\.maxMs is a number above 0, not "90d"/, { lifetimes: { maxMs: "90d" } }],
    ["a certificate that is not set", /tls is given but undefined/, { tls: undefined }],
    ["a first token that is not set", /bootstrapToken is given but undefined/, { bootstrapToken: undefined }],
    ["no runner", /runner is what createRunner/, { runner: { workflows: [hello] } }],
  ])("%s", async (_what, pattern, options) => {
    await refused(pattern, () => listen(options === undefined ? undefined : { store, port: 0, ...options }));
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe("Tape.open refuses, and opens nothing", () => {
  it.each<[string, RegExp, unknown]>([
    ["no options at all", /not an object, but undefined/, undefined],
    ["no store", /store is a URL such as "sqlite:\.\/tape\.db" or an open store, not undefined/, { runner }],
    ["something else as a store", /not an object/, { store: {}, runner }],
    ["no runner", /runner is what createRunner\(\{ workflows: \[…\] \}\) returns, not undefined/, { store }],
    ["workflows instead of a runner", /pass runner: createRunner\(\{ workflows \}\)/, { store, workflows: [hello] }],
    ["a mistyped tenant", /no option tennant; did you mean tenant\?/, { store, runner, tennant: "acme" }],
    ["an empty tenant", /tenant needs a name/, { store, runner, tenant: "" }],
    ["room for no run", /concurrency is a whole number from 1 to 100000, not 0/, { store, runner, concurrency: 0 }],
    ["room for fewer", /not -1/, { store, runner, concurrency: -1 }],
    ["room for NaN", /not NaN/, { store, runner, concurrency: Number.NaN }],
    ["room for null", /not null/, { store, runner, concurrency: null }],
    ["room in letters", /not "abc"/, { store, runner, concurrency: "abc" }],
    ["half a run", /not 1.5/, { store, runner, concurrency: 1.5 }],
    ["no duration", /leaseTtl is not a duration.*: "abc"/, { store, runner, leaseTtl: "abc" }],
    ["a text that is no duration", /did you mean "10m"\?/, { store, runner, leaseTtl: "10 mins" }],
    ["less than no time", /leaseTtl is not a duration.*: -1/, { store, runner, leaseTtl: -1 }],
    ["not a number of ms", /leaseTtl is not a duration.*: NaN/, { store, runner, leaseTtl: Number.NaN }],
    ["a log level that there is not", /log is "silent", "debug".* not "verbose"/, { store, runner, log: "verbose" }],
    ["work as text", /work is true or false, not "no"/, { store, runner, work: "no" }],
  ])("%s", async (_what, pattern, options) => {
    await refused(pattern, () => open(options));
    expect(readdirSync(folder)).toEqual([]);
  });

  it("an app that cannot be created leaves no store open", async () => {
    // Only the open store can check the timings; a store that stayed open would keep its file locked.
    const exclusive = `sqlite:${join(folder, "exclusive.db")}?processes=single`;
    await refused(/ttl/, () => open({ store: exclusive, runner, leaseTtl: 0 }), "TAPE_BAD_TIMING");
    await (await open({ store: exclusive, runner, log: "silent" })).close();
    for (const file of readdirSync(folder)) rmSync(join(folder, file));
  });
});

describe("Tape.connect refuses, and sends no request", () => {
  it.each<[string, RegExp, unknown[]]>([
    ["no address", /the address is a URL such as/, []],
    ["no address in a list", /the address is a URL/, [[]]],
    ["a store", /the server's address is the first argument/, ["http://127.0.0.1:9", { store: "sqlite:x" }]],
    ["a tenant", /the token determines the tenant/, ["http://127.0.0.1:9", { tenant: "acme" }]],
    ["a mistyped token", /did you mean token/, ["http://127.0.0.1:9", { tokn: "x" }]],
    ["no concurrency", /concurrency/, ["http://127.0.0.1:9", { runner, concurrency: 0 }]],
  ])("%s", async (_what, pattern, args) => refused(pattern, () => connect(...args)));
});

describe("definitions are refused where they are created", () => {
  const run = async (): Promise<void> => {};
  it.each<[string, RegExp, () => unknown]>([
    ["a workflow that is no function", /needs a function, not an object/, () => plainWorkflow("w", {})],
    ["a mistyped option", /no option retrys; did you mean retry/, () => plainWorkflow("w", run, { retrys: 3 })],
    ["NaN attempts", /retry.attempts .* not NaN/, () => plainWorkflow("w", run, { retry: { attempts: Number.NaN } })],
    ["no attempt", /retry.attempts .* at least 1, not 0/, () => plainWorkflow("w", run, { retry: { attempts: 0 } })],
    [
      "a retry of nothing",
      /retry must be an object such as \{ attempts: 3 \}, not null/,
      () => plainWorkflow("w", run, { retry: null }),
    ],
    ["a number as a retry", /not 5/, () => plainWorkflow("w", run, { retry: 5 })],
    ["a mistyped retry", /did you mean attempts/, () => plainWorkflow("w", run, { retry: { attempt: 3 } })],
    ["a bad base", /retry.base is not a duration/, () => plainWorkflow("w", run, { retry: { base: "soon" } })],
    ["a bad cap", /did you mean "1m"/, () => plainWorkflow("w", run, { retry: { cap: "1 minute" } })],
    ["a bad factor", /retry.factor .* not NaN/, () => plainWorkflow("w", run, { retry: { factor: Number.NaN } })],
    ["a schema that is none", /input is no schema/, () => plainWorkflow("w", run, { input: { type: "object" } })],
    ["a gate's option", /no option shema; did you mean schema/, () => plainGate("cfo", { shema: 1 })],
    ["a time-out of a gate", /tape\.gate\(gate, \{ timeout \}\)/, () => plainGate("cfo", { timeout: "1h" })],
  ])("%s", (_what, pattern, define) => refused(pattern, define));
});

describe("an app refuses, before anything is written", () => {
  let app: Tape;
  beforeEach(async () => {
    app = await Tape.open({ store: "memory:", runner, log: "silent" });
  });
  afterEach(() => app.close());
  // biome-ignore lint/suspicious/noExplicitAny: as plain JavaScript would call it
  type Loose = any;

  it.each<[string, RegExp, (app: Loose) => unknown, ErrorCode?]>([
    ["a workflow by its name", /a workflow is what workflow\("name"/, (on) => on.start("hello", "Ada")],
    ["a bare function", /not a function/, (on) => on.start(async () => {}, "Ada")],
    ["a mistyped id", /no option idd; did you mean id/, (on) => on.start(hello, "Ada", { idd: "x" })],
    ["a mistyped key of a signal", /did you mean key/, (on) => on.signal("x", gate("g"), 1, { kye: "x" })],
    ["no gate", /gate needs a name/, (on) => on.signal("x", "cfo", 1)],
    ["a mistyped reason", /did you mean reason/, (on) => on.cancel("x", { reson: "x" })],
    [
      "an age that is no duration",
      /minAge is not a duration.*"10 mins"/,
      (on) => on.effects.list({ minAge: "10 mins" }),
    ],
    ["a mistyped filter", /did you mean status/, (on) => on.effects.list({ stauts: "UNKNOWN" })],
    ["the same of obligations", /minAge/, (on) => on.obligations.list({ minAge: "abc" })],
    ["a worker without a runner", /runner is what/, (on) => on.worker({ workflows: [hello] })],
    ["a worker without room", /concurrency/, (on) => on.worker(runner, { concurrency: 0 })],
    ["a lease's option", /did you mean ttl/, (on) => on.leases.acquire("x", { tll: "30s" })],
    ["a lease's time", /ttl is not a duration/, (on) => on.leases.acquire("x", { ttl: "abc" })],
    [
      "a stall below a heartbeat",
      /must be longer than the heartbeat/,
      (on) => on.leases.acquire("x", { maxStall: "1s" }),
      "TAPE_BAD_TIMING",
    ],
    ["the same in one try", /heartbeat/, (on) => on.leases.tryAcquire("x", { maxStall: "1s" }), "TAPE_BAD_TIMING"],
    ["a singleton's option", /did you mean heartbeat/, (on) => on.singleton("x", () => {}, { hartbeat: "1s" })],
    ["its backoff", /did you mean base/, (on) => on.singleton("x", () => {}, { backoff: { bse: "1s" } })],
    [
      "its first pause",
      /backoff.base is not a duration/,
      (on) => on.singleton("x", () => {}, { backoff: { base: null } }),
    ],
    [
      "its last pause",
      /backoff.cap is not a duration/,
      (on) => on.singleton("x", () => {}, { backoff: { cap: null } }),
    ],
    ["its work", /its work is a function/, (on) => on.singleton("x", undefined)],
  ])("%s", async (_what, pattern, call, code) => {
    await refused(pattern, () => call(app), code);
    expect(await app.runs.list()).toEqual([]);
    expect(await app.leases.list()).toEqual([]);
  });

  it("a gate's mistyped timeout fails the run at once instead of waiting forever", async () => {
    const cfo = gate("cfo");
    const asks = workflow("asks", async (tape) => tape.gate(cfo, { timout: "1s" } as never));
    app.worker(createRunner({ workflows: [asks] }));
    const ended = await (await app.start(asks, undefined)).result().catch((error: Error) => error);
    expect(ended).toMatchObject({ code: "TAPE_RUN_FAILED" });
    expect(String((ended as Error).cause)).toMatch(/TAPE_BAD_INPUT.*no option timout; did you mean timeout\?/);
  });
});

describe("limits of a store", () => {
  it.each<[string, RegExp, object]>([
    ["no records", /limits.journalRecords must be an integer of at least 32, not 0/, { journalRecords: 0 }],
    ["NaN bytes", /payloadBytes .* not NaN/, { payloadBytes: Number.NaN }],
    ["a mistyped one", /unknown limit pagerows; did you mean pageRows/, { pagerows: 10 }],
  ])("%s", async (_what, pattern, limits) => {
    for (const url of ["memory:", store]) await refused(pattern, () => openStore(url, { limits }));
    expect(readdirSync(folder)).toEqual([]);
  });

  it("an undefined limit has its default", async () => {
    const opened = await openStore("memory:", { limits: { pageRows: undefined } as never });
    expect(opened.limits.pageRows).toBe(1_000);
    await opened.close();
  });
});
