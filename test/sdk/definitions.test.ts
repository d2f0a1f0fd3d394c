import { describe, expect, it } from "vitest";
import { functionConnector } from "../../src/connector/function.ts";
import { httpConnector } from "../../src/connector/http/connector.ts";
import { type ErrorCode, isTapeError } from "../../src/model/errors.ts";
import { effect } from "../../src/sdk/effect.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { createRunner } from "../../src/sdk/workflow.ts";

function refused(code: ErrorCode, message: RegExp, define: () => unknown): void {
  let error: unknown;
  try {
    define();
  } catch (thrown) {
    error = thrown;
  }
  expect(isTapeError(error, code), `${String(error)} is not ${code}`).toBe(true);
  expect(String(error)).toMatch(message);
}

/** As plain JavaScript calls it, without type checks. */
const untyped = effect as unknown as (...args: unknown[]) => unknown;
const plainFunction = functionConnector as unknown as (...args: unknown[]) => unknown;
const plainHttp = httpConnector as unknown as (...args: unknown[]) => unknown;
const body = () => 1;
const dispatch = () => "done";
const retrying = (retry: unknown) => untyped("x", body, { semantics: "read", retry });
const compensatedBy = (compensate: unknown) => untyped("x", body, { compensate });

describe("the definition of an effect rejects", () => {
  it.each<[string, RegExp, () => unknown]>([
    ["no name", /needs a name/, () => untyped("", body, { semantics: "read" })],
    ["neither a body nor a connector", /needs a body or a connector/, () => untyped("x", {})],
    [
      "both a body and a connector",
      /has a body and a connector/,
      () => untyped("x", body, { semantics: "read", connector: "bank" }),
    ],
    ["a connector without a name", /needs a name/, () => untyped("x", { connector: "" })],
    [
      "inline dispatch by a connector",
      /only the outbox/,
      () => untyped("x", { connector: "bank", dispatch: "inline" }),
    ],
    ["a mistyped option", /no option semantic; did you mean semantics/, () => untyped("x", body, { semantic: "read" })],
    ["unknown semantics", /not exactly_once/, () => untyped("x", body, { semantics: "exactly_once" })],
    ["unknown dispatch", /not later/, () => untyped("x", body, { semantics: "read", dispatch: "later" })],
    ["zero attempts", /at least 1/, () => untyped("x", body, { semantics: "read", retry: { attempts: 0 } })],
    ["an invalid duration", /not a duration/, () => untyped("x", body, { semantics: "read", timeout: "soon" })],
    ["NaN as a factor", /retry.factor is a number.*NaN/, () => retrying({ factor: Number.NaN })],
    ["text as a factor", /retry.factor is a number.*"twice"/, () => retrying({ factor: "twice" })],
    ["a factor below one", /retry.factor is a number/, () => retrying({ factor: -1 })],
    ["NaN attempts", /retry.attempts is a whole number/, () => retrying({ attempts: Number.NaN })],
    ["an unknown unit in base", /retry.base is not a duration/, () => retrying({ base: "1 sec" })],
    ["a negative cap", /retry.cap is not a duration/, () => retrying({ cap: -1 })],
    ["a mistyped retry", /no option attempt; did you mean attempts/, () => retrying({ attempt: 3 })],
    ["a number as retry", /retry must be an object such as/, () => retrying(5)],
    ["null as retry", /retry must be an object such as/, () => retrying(null)],
    ["text as a business key", /businessKey is not a function/, () => untyped("x", body, { businessKey: "invoice" })],
    ["an object as observe", /observe is not a function/, () => untyped("x", body, { observe: {} })],
    ["true as isDefinite", /isDefinite is not a function/, () => untyped("x", body, { isDefinite: true })],
    ["true as allowUnsafe", /allowUnsafe is not text/, () => untyped("x", body, { allowUnsafe: true })],
    ["null as options", /options are not an object/, () => untyped("x", body, null)],
    [
      "an object as observe of compensate",
      /observe is not a function/,
      () => compensatedBy({ run: body, observe: {} }),
    ],
    ["null as compensate", /options are not an object/, () => compensatedBy(null)],
    [
      "compensate without a function",
      /needs a function/,
      () => untyped("x", body, { compensate: { semantics: "read" } }),
    ],
    ["a mistyped option of compensate", /did you mean run/, () => untyped("x", body, { compensate: { runs: body } })],
  ])("%s", (_, message, define) => refused("TAPE_BAD_INPUT", message, define));
});

describe("the definition of a connector rejects", () => {
  const request = () => ({ url: "x" });
  it.each<[string, RegExp, () => unknown]>([
    ["no name", /needs a name/, () => plainFunction("", { dispatch })],
    ["no dispatch", /dispatch is not a function/, () => plainFunction("bank", {})],
    ["a number as observe", /observe is not a function/, () => plainFunction("bank", { dispatch, observe: 1 })],
    ["a mistyped part", /did you mean observe/, () => plainFunction("bank", { dispatch, observes: body })],
    ["no parts", /not an object/, () => plainFunction("bank", null)],
    ["http: no request", /request is not a function/, () => plainHttp("bank", { url: "https://a.test/" })],
    ["http: a mistyped option", /did you mean allow/, () => plainHttp("bank", { request, allows: [] })],
    ["http: a file URL", /neither http/, () => plainHttp("bank", { request, url: "file:///etc/" })],
    ["http: a URL with a password", /password/, () => plainHttp("bank", { request, url: "https://u:p@a.test/" })],
    [
      "http: a URL without a trailing slash",
      /ends with/,
      () => plainHttp("bank", { request, url: "https://a.test/v1" }),
    ],
    ["http: a URL with a query", /ends with/, () => plainHttp("bank", { request, url: "https://a.test/?a=1" })],
    ["http: an invalid URL", /cannot be read/, () => plainHttp("bank", { request, url: "bank" })],
    [
      "http: an invalid address block",
      /10.0.0.0\/99 is not/,
      () => plainHttp("bank", { request, allow: ["10.0.0.0/99"] }),
    ],
    [
      "http: the key as a header",
      /set by the connector/,
      () => plainHttp("b", { request, headers: { "Idempotency-Key": "1" } }),
    ],
    [
      "http: a header with a line break",
      /cannot be sent/,
      () => plainHttp("b", { request, headers: { a: "1\r\nhost: x" } }),
    ],
    ["http: a timeout of 0", /not a duration/, () => plainHttp("bank", { request, connectTimeout: 0 })],
    [
      "http: null as a timeout",
      /responseTimeout is not a duration/,
      () => plainHttp("b", { request, responseTimeout: null }),
    ],
    [
      "http: null as a connect timeout",
      /connectTimeout is not a dur/,
      () => plainHttp("b", { request, connectTimeout: null }),
    ],
    ["http: a response limit of 0", /at least 1/, () => plainHttp("bank", { request, maxResponseBytes: 0 })],
    [
      "http: an observation without read",
      /read is not a function/,
      () => plainHttp("b", { request, observe: { request } }),
    ],
    [
      "http: unchecked certificates",
      /no option rejectUnauthorized/,
      () => plainHttp("b", { request, tls: { rejectUnauthorized: false } }),
    ],
    [
      "http: unknown semantics",
      /not never/,
      () => plainHttp("b", { request, compensate: { request, semantics: "never" } }),
    ],
  ])("%s", (_, message, define) => refused("TAPE_BAD_INPUT", message, define));
});

describe("a runner", () => {
  const wire = effect<{ invoice: string }, string>("wire", { connector: "bank" });

  it("rejects an effect that neither it nor its connector can observe or compensate", () => {
    const blind = functionConnector("bank", { dispatch });
    const observing = functionConnector("bank", { dispatch, observe: () => outcome.absent() });
    const compensating = functionConnector("bank", { dispatch, compensate: () => {} });
    const keyed = effect<{ invoice: string }, string>("wire", { connector: "bank", businessKey: (a) => a.invoice });
    const runner = (connector: typeof blind, call = wire) =>
      createRunner({ workflows: [], effects: [call], connectors: [connector] });
    refused("TAPE_UNSAFE_EFFECT", /wire cannot be sent twice/, () => runner(blind));
    refused("TAPE_UNSAFE_EFFECT", /wire cannot be sent twice/, () => runner(observing)); // it has no key to observe by
    refused("TAPE_UNSAFE_EFFECT", /wire cannot be sent twice/, () => runner(blind, keyed));
    expect(runner(observing, keyed).effects.get("wire")?.observe).toBeDefined();
    expect(runner(compensating).effects.get("wire")?.compensate?.semantics).toBe("non_idempotent");
    const unsafe = effect<unknown, string>("wire", { connector: "bank", allowUnsafe: "a test" });
    expect(runner(blind, unsafe).effects.has("wire")).toBe(true);
  });

  it("omits only effects whose connector it does not have", () => {
    const own = effect("own", body, { semantics: "read" });
    const runner = createRunner({ workflows: [], effects: [wire, own] });
    expect([...runner.effects.keys()]).toEqual(["own"]);
  });

  it("rejects duplicate names and unknown options", () => {
    const bank = functionConnector("bank", { dispatch });
    refused("TAPE_BAD_INPUT", /two connectors have the name bank/, () =>
      createRunner({ workflows: [], connectors: [bank, bank] }),
    );
    const mistyped = { workflows: [], effect: [] };
    refused("TAPE_BAD_INPUT", /did you mean effects/, () => createRunner(mistyped));
  });

  it("prefers the effect's own functions to its connector's; a read has no compensation", async () => {
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
    const { compensate } = effects.get("plain")!;
    expect([compensate!.semantics, compensate!.run("a", "r", fx)]).toEqual(["idempotent", "connector"]);
    expect(await compensate!.observe!({ args: "a", result: "r" }, fx)).toMatchObject({ final: true });
    expect(effects.get("own")!.compensate!.run("a", "r", fx)).toBe("effect");
    expect(effects.get("reads")!.compensate).toBeUndefined();
  });
});
