import { describe, expect, it } from "vitest";
import { functionConnector } from "../../src/connector/function.ts";
import { httpConnector } from "../../src/connector/http/connector.ts";
import { type ErrorCode, isTapeError } from "../../src/model/errors.ts";
import { effect } from "../../src/sdk/effect.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { createRunner } from "../../src/sdk/workflow.ts";

function refused(code: ErrorCode, words: RegExp, define: () => unknown): void {
  let error: unknown;
  try {
    define();
  } catch (thrown) {
    error = thrown;
  }
  expect(isTapeError(error, code), `${String(error)} is not ${code}`).toBe(true);
  expect(String(error)).toMatch(words);
}

/** As plain JavaScript would call it, where no compiler has looked. */
const untyped = effect as unknown as (...args: unknown[]) => unknown;
const plainFunction = functionConnector as unknown as (...args: unknown[]) => unknown;
const plainHttp = httpConnector as unknown as (...args: unknown[]) => unknown;
const body = () => 1;
const dispatch = () => "done";
const retrying = (retry: unknown) => untyped("x", body, { semantics: "read", retry });
const undone = (compensate: unknown) => untyped("x", body, { compensate });

describe("an effect that is defined wrongly is refused at once", () => {
  it.each<[string, RegExp, () => unknown]>([
    ["no name", /needs a name/, () => untyped("", body, { semantics: "read" })],
    ["neither body nor connector", /needs a body or a connector/, () => untyped("x", {})],
    ["both", /has a body and a connector/, () => untyped("x", body, { semantics: "read", connector: "bank" })],
    ["a connector without a name", /needs a name/, () => untyped("x", { connector: "" })],
    ["inline by a connector", /only the outbox/, () => untyped("x", { connector: "bank", dispatch: "inline" })],
    ["a mistyped option", /no option semantic; did you mean semantics/, () => untyped("x", body, { semantic: "read" })],
    ["unknown semantics", /not exactly_once/, () => untyped("x", body, { semantics: "exactly_once" })],
    ["unknown dispatch", /not later/, () => untyped("x", body, { semantics: "read", dispatch: "later" })],
    ["no attempt at all", /at least 1/, () => untyped("x", body, { semantics: "read", retry: { attempts: 0 } })],
    ["no duration", /not a duration/, () => untyped("x", body, { semantics: "read", timeout: "soon" })],
    ["a factor that is no number", /retry.factor is a number.*NaN/, () => retrying({ factor: Number.NaN })],
    ["a factor in letters", /retry.factor is a number.*"twice"/, () => retrying({ factor: "twice" })],
    ["a factor below one", /retry.factor is a number/, () => retrying({ factor: -1 })],
    ["attempts that are no number", /retry.attempts is a whole number/, () => retrying({ attempts: Number.NaN })],
    ["a base in words", /retry.base is not a duration/, () => retrying({ base: "1 sec" })],
    ["a negative cap", /retry.cap is not a duration/, () => retrying({ cap: -1 })],
    ["a mistyped retry", /no option attempt; did you mean attempts/, () => retrying({ attempt: 3 })],
    ["a number for a retry", /retry must be an object such as/, () => retrying(5)],
    ["null for a retry", /retry must be an object such as/, () => retrying(null)],
    [
      "a text for a business key",
      /businessKey is not a function/,
      () => untyped("x", body, { businessKey: "invoice" }),
    ],
    ["an object for observe", /observe is not a function/, () => untyped("x", body, { observe: {} })],
    ["true for isDefinite", /isDefinite is not a function/, () => untyped("x", body, { isDefinite: true })],
    ["true for allowUnsafe", /allowUnsafe is not text/, () => untyped("x", body, { allowUnsafe: true })],
    ["null for options", /options are not an object/, () => untyped("x", body, null)],
    ["a look at an inverse that is none", /observe is not a function/, () => undone({ run: body, observe: {} })],
    ["null for an inverse", /options are not an object/, () => undone(null)],
    ["an inverse of nothing", /needs a function/, () => untyped("x", body, { compensate: { semantics: "read" } })],
    ["a mistyped inverse", /did you mean run/, () => untyped("x", body, { compensate: { runs: body } })],
  ])("%s", (_, words, define) => refused("TAPE_BAD_INPUT", words, define));
});

describe("a connector that is defined wrongly is refused at once", () => {
  const request = () => ({ url: "x" });
  it.each<[string, RegExp, () => unknown]>([
    ["no name", /needs a name/, () => plainFunction("", { dispatch })],
    ["no dispatch", /dispatch is not a function/, () => plainFunction("bank", {})],
    ["observe is no function", /observe is not a function/, () => plainFunction("bank", { dispatch, observe: 1 })],
    ["a mistyped part", /did you mean observe/, () => plainFunction("bank", { dispatch, observes: body })],
    ["no parts", /not an object/, () => plainFunction("bank", null)],
    ["http: no request", /request is not a function/, () => plainHttp("bank", { url: "https://a.test/" })],
    ["http: no such option", /did you mean allow/, () => plainHttp("bank", { request, allows: [] })],
    ["http: url of a file", /neither http/, () => plainHttp("bank", { request, url: "file:///etc/" })],
    ["http: url with a password", /password/, () => plainHttp("bank", { request, url: "https://u:p@a.test/" })],
    ["http: url without its slash", /ends with/, () => plainHttp("bank", { request, url: "https://a.test/v1" })],
    ["http: url with a query", /ends with/, () => plainHttp("bank", { request, url: "https://a.test/?a=1" })],
    ["http: no url", /cannot be read/, () => plainHttp("bank", { request, url: "bank" })],
    ["http: a block that is none", /10.0.0.0\/99 is not/, () => plainHttp("bank", { request, allow: ["10.0.0.0/99"] })],
    [
      "http: the key as a header",
      /set by the connector/,
      () => plainHttp("b", { request, headers: { "Idempotency-Key": "1" } }),
    ],
    [
      "http: a header of two lines",
      /cannot be sent/,
      () => plainHttp("b", { request, headers: { a: "1\r\nhost: x" } }),
    ],
    ["http: no time", /not a duration/, () => plainHttp("bank", { request, connectTimeout: 0 })],
    [
      "http: null for a time",
      /responseTimeout is not a duration/,
      () => plainHttp("b", { request, responseTimeout: null }),
    ],
    ["http: null to connect", /connectTimeout is not a dur/, () => plainHttp("b", { request, connectTimeout: null })],
    ["http: no room", /at least 1/, () => plainHttp("bank", { request, maxResponseBytes: 0 })],
    [
      "http: a look that reads nothing",
      /read is not a function/,
      () => plainHttp("b", { request, observe: { request } }),
    ],
    [
      "http: unchecked certificates",
      /no option rejectUnauthorized/,
      () => plainHttp("b", { request, tls: { rejectUnauthorized: false } }),
    ],
    [
      "http: odd semantics",
      /not never/,
      () => plainHttp("b", { request, compensate: { request, semantics: "never" } }),
    ],
  ])("%s", (_, words, define) => refused("TAPE_BAD_INPUT", words, define));
});

describe("a runner", () => {
  const wire = effect<{ invoice: string }, string>("wire", { connector: "bank" });

  it("refuses what cannot be resolved after a lost answer, where effect and connector are both known", () => {
    const blind = functionConnector("bank", { dispatch });
    const seeing = functionConnector("bank", { dispatch, observe: () => outcome.absent() });
    const undoing = functionConnector("bank", { dispatch, compensate: () => {} });
    const keyed = effect<{ invoice: string }, string>("wire", { connector: "bank", businessKey: (a) => a.invoice });
    const runner = (connector: typeof blind, act = wire) =>
      createRunner({ workflows: [], effects: [act], connectors: [connector] });
    refused("TAPE_UNSAFE_EFFECT", /wire cannot be sent twice/, () => runner(blind));
    refused("TAPE_UNSAFE_EFFECT", /wire cannot be sent twice/, () => runner(seeing)); // by which key would it look?
    refused("TAPE_UNSAFE_EFFECT", /wire cannot be sent twice/, () => runner(blind, keyed));
    expect(runner(seeing, keyed).effects.get("wire")?.observe).toBeDefined();
    expect(runner(undoing).effects.get("wire")?.compensate?.semantics).toBe("non_idempotent");
    const reckless = effect<unknown, string>("wire", { connector: "bank", allowUnsafe: "a test" });
    expect(runner(blind, reckless).effects.has("wire")).toBe(true);
  });

  it("leaves out an effect whose connector is elsewhere, and only that", () => {
    const own = effect("own", body, { semantics: "read" });
    const runner = createRunner({ workflows: [], effects: [wire, own] });
    expect([...runner.effects.keys()]).toEqual(["own"]);
  });

  it("two of one name are refused, and so are parts that it does not know", () => {
    const bank = functionConnector("bank", { dispatch });
    refused("TAPE_BAD_INPUT", /two connectors have the name bank/, () =>
      createRunner({ workflows: [], connectors: [bank, bank] }),
    );
    const mistyped = { workflows: [], effect: [] };
    refused("TAPE_BAD_INPUT", /did you mean effects/, () => createRunner(mistyped));
  });

  it("what the effect declares goes before what its connector can do; a read has nothing to undo", async () => {
    const fx = { key: "k" } as never;
    const bank = functionConnector("bank", {
      dispatch: (args: string, { effect: name }) => `${name} ${args}`,
      observe: () => outcome.inconclusive("connector"),
      compensate: { run: () => "connector", semantics: "idempotent", observe: () => outcome.absent({ final: true }) },
    });
    const plain = effect<string, string>("plain", { connector: "bank" });
    const own = effect<string, string>("own", {
      connector: "bank",
      observe: () => outcome.inconclusive("effect"),
      compensate: () => "effect",
    });
    const reads = effect<string, string>("reads", { connector: "bank", semantics: "read" });
    const { effects } = createRunner({ workflows: [], effects: [plain, own, reads], connectors: [bank] });
    expect(await effects.get("plain")!.body!("a", fx)).toBe("plain a");
    expect(await effects.get("own")!.body!("a", fx)).toBe("own a");
    expect(await effects.get("plain")!.observe!("a", fx)).toMatchObject({ reason: "connector" });
    expect(await effects.get("own")!.observe!("a", fx)).toMatchObject({ reason: "effect" });
    const { compensate: inverse } = effects.get("plain")!;
    expect([inverse!.semantics, inverse!.run("a", "r", fx)]).toEqual(["idempotent", "connector"]);
    expect(await inverse!.observe!({ args: "a", result: "r" }, fx)).toMatchObject({ final: true });
    expect(effects.get("own")!.compensate!.run("a", "r", fx)).toBe("effect");
    expect(effects.get("reads")!.compensate).toBeUndefined();
  });
});
