import { expect, it } from "vitest";
import { decode, encode } from "../../src/base/codec.ts";
import { Tape } from "../../src/host/tape.ts";
import { TapeError } from "../../src/model/errors.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";

const canary = "sk-live-4242-canary";

/** As axios, got, undici and octokit create them: the error references the failed request with its credentials. */
const clientErrors: Readonly<Record<string, () => Error>> = {
  axios: () =>
    Object.assign(new Error("Request failed with status code 401"), {
      code: "ERR_BAD_REQUEST",
      config: {
        url: "/v1/charges",
        method: "post",
        headers: { Authorization: `Bearer ${canary}` },
        auth: { password: canary },
      },
      response: {
        status: 401,
        statusText: "Unauthorized",
        data: { error: "bad key" },
        headers: { "set-cookie": [canary] },
        config: { headers: { "X-Api-Key": canary } },
        request: { method: "POST", _header: `Cookie: ${canary}` },
      },
    }),
  got: () =>
    Object.assign(new Error("401"), {
      options: { url: "https://x", headers: { cookie: canary } },
      timings: { start: 1 },
    }),
  octokit: () =>
    Object.assign(new Error("Bad credentials"), {
      status: 401,
      request: { method: "GET", url: "u", headers: { authorization: canary } },
    }),
  nested: () =>
    new Error("outer", { cause: Object.assign(new Error("inner"), { headers: { "x-amz-security-token": canary } }) }),
  named: () =>
    Object.assign(new Error("no"), {
      apiKey: canary,
      client_secret: canary,
      accessToken: canary,
      passphrase: canary,
      context: { password: canary },
    }),
  many: () =>
    new AggregateError([Object.assign(new Error("one"), { rawHeaders: ["Authorization", canary] })], "all failed"),
};

it.each(Object.keys(clientErrors))("%s: the request's credentials do not reach the journal", async (client) => {
  const calls = workflow("calls", async (tape) => tape.step("charge", () => Promise.reject(clientErrors[client]!())));
  await using app = await Tape.open({ store: "memory:", runner: createRunner({ workflows: [calls] }), log: "silent" });
  const run = await app.start(calls, undefined, { id: "r" });
  const ended = await run.result().catch((error: Error) => error);
  const records = await Array.fromAsync(app.journal("r"));
  expect(encode(records.map(({ data }) => data))).not.toContain(canary);
  // The message stays.
  expect(String((ended as Error).cause)).toContain(clientErrors[client]!().message);
});

it("keeps status, code, response data, fencing tokens and a config that is no request", () => {
  const error = decode(encode(clientErrors.axios!())) as Record<string, unknown>;
  expect(error).toMatchObject({ code: "ERR_BAD_REQUEST", response: { status: 401, data: { error: "bad key" } } });
  const own = Object.assign(new Error("x"), { config: { retries: 3 }, tokens: 512, token: "17" });
  expect(decode(encode(own))).toMatchObject({ config: { retries: 3 }, tokens: 512, token: "17" });
  const tapeError = decode(encode(new TapeError("TAPE_FENCED", "gone", { token: "18" }))) as TapeError;
  expect(tapeError).toMatchObject({
    code: "TAPE_FENCED",
    details: { token: "18" },
    next: expect.stringContaining("newer token"),
  });
});

it("bounds the properties of an error and keeps the error itself", () => {
  const error = Object.assign(new Error("too long"), { body: "x".repeat(10_000_000), status: 500 });
  expect(encode(error).length).toBeLessThan(100_000);
  expect(decode(encode(error))).toMatchObject({ message: "too long" });
});
