import { expect, it } from "vitest";
import { providerFault } from "../../src/agent/faults.ts";

const failure = (fields: object, cause?: unknown): Error =>
  Object.assign(new Error("no", cause === undefined ? {} : { cause }), fields);

it.each([
  ["a rate limit", failure({ status: 429 }), true],
  ["a time-out of the server", failure({ statusCode: 408 }), true],
  ["a broken server", failure({ status: 503 }), true],
  ["a bad request", failure({ status: 400, code: "ECONNRESET" }), false],
  ["a status of the cause", failure({}, failure({ status: 500 })), true],
  ["a broken connection", failure({}, failure({ code: "ECONNRESET" })), true],
  ["a request that was not sent", new TypeError("fetch failed"), true],
  ["an error of a client's connection", failure({ name: "APIConnectionError" }), true],
  ["a mistake in the code", new TypeError("x is not a function"), false],
  ["no error", "no", false],
])("%s", (_, error, retry) => {
  expect(providerFault(error).retry).toBe(retry);
});

it.each([
  [{ headers: new Headers({ "retry-after": "12" }) }, 12_000],
  [{ responseHeaders: { "Retry-After-Ms": "250", "retry-after": "12" } }, 250],
  [{ headers: { "retry-after": "99999999" } }, 86_400_000],
  [{ headers: { "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT" } }, undefined],
  [{}, undefined],
])("%o: waits %s ms", (fields, ms) => {
  expect(providerFault(failure({ status: 429, ...fields })).retryAfterMs).toBe(ms);
});

it("keeps the name, the status and what the adapter adds", () => {
  expect(providerFault(failure({ name: "ApiError", status: 400 }), { type: "bad" }).facts).toEqual({
    ...{ name: "ApiError", status: 400, type: "bad" },
  });
});
