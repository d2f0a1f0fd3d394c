import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { seededRandom } from "../../src/base/random.ts";
import { addressOf } from "../../src/client/address.ts";
import { RequestNotSent } from "../../src/client/errors.ts";
import { RpcCaller } from "../../src/client/rpc-caller.ts";
import { type ErrorCode, isTapeError, TapeError } from "../../src/model/errors.ts";
import type { Transport, WireRequest } from "../../src/protocol/transport.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { refusal } from "./faulty.ts";

const ok = (json: unknown) => ({ status: 200, headers: {}, body: Buffer.from(JSON.stringify(json)) });
const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "answered",
    (error: unknown) => (isTapeError(error) ? error.code : error),
  );
/** Time passes only in pauses: how many retries fit into the retry time does not depend on the machine. */
class PausingClock extends ManualClock {
  override sleep(ms: number): Promise<void> {
    return this.elapse(ms);
  }
}
const callerOver = (...exchanges: Transport[]) =>
  new RpcCaller({
    exchanges,
    clock: new PausingClock(),
    random: seededRandom(1),
    log: silentLog,
    retryForMs: 2_500,
    token: "id.secret",
  });
const cancel = (caller: RpcCaller) => caller.call("runs.cancel", { params: { id: "r" }, body: { reason: "why" } });
const read = (caller: RpcCaller) => caller.call("store.progress", { body: { ids: ["r"] } });

describe("a call without a response", () => {
  const cases: readonly (readonly [string, () => Promise<never>, ErrorCode, ErrorCode])[] = [
    [
      "never left",
      () => Promise.reject(new RequestNotSent("refused")),
      "TAPE_STORE_UNREACHABLE",
      "TAPE_STORE_UNREACHABLE",
    ],
    ["may have arrived", () => Promise.reject(new Error("reset")), "TAPE_OUTCOME_UNKNOWN", "TAPE_STORE_UNREACHABLE"],
  ];
  it.each(cases)("%s", async (_, exchange, writeCode, readCode) => {
    expect(await codeOf(cancel(callerOver(exchange)))).toBe(writeCode);
    expect(await codeOf(read(callerOver(exchange)))).toBe(readCode);
  });

  it("stays unknown if a retry is refused for overload", async () => {
    let n = 0;
    const full = new TapeError("TAPE_OVERLOADED", "too many");
    const mixed: Transport = async () => {
      if (n++ === 0) throw new Error("reset");
      return refusal(full);
    };
    expect(await codeOf(cancel(callerOver(mixed)))).toBe("TAPE_OUTCOME_UNKNOWN");
    expect(await codeOf(cancel(callerOver(async () => refusal(full))))).toBe("TAPE_OVERLOADED");
  });

  it("is retried with its key at the next replica; a new call has a new key", async () => {
    const seen: { replica: number; request: WireRequest }[] = [];
    const replica =
      (of: number): Transport =>
      async (request) => {
        seen.push({ replica: of, request });
        if (seen.length < 3) throw new Error("reset");
        return ok({ n: 1 });
      };
    const caller = callerOver(replica(0), replica(1));
    expect(await cancel(caller)).toEqual({ n: 1 });
    expect(seen.map(({ replica: of }) => of)).toEqual([0, 1, 0]);
    expect(new Set(seen.map(({ request }) => request.headers["idempotency-key"])).size).toBe(1);
    expect(seen[0]!.request.headers.authorization).toBe("Bearer id.secret");
    await cancel(caller);
    expect(seen[3]!.replica).toBe(0); // the one that answered last
    expect(seen[3]!.request.headers["idempotency-key"]).not.toBe(seen[0]!.request.headers["idempotency-key"]);
  });

  it("waits as long as Retry-After says, within its retry time", async () => {
    const clock = new ManualClock();
    let requests = 0;
    const limited: Transport = async () => {
      requests++;
      return requests < 3
        ? refusal(new TapeError("TAPE_RATE_LIMITED", "slowly"), { "retry-after": "3" })
        : ok({ runs: [] });
    };
    const caller = new RpcCaller({
      exchanges: [limited],
      clock,
      random: seededRandom(1),
      log: silentLog,
      retryForMs: 7_000,
    });
    const answered = read(caller);
    await clock.elapse(2_999);
    expect(requests).toBe(1);
    await clock.elapse(2);
    expect(requests).toBe(2);
    await clock.elapse(3_001);
    expect(await answered).toEqual({ runs: [] });
    requests = 0;
    const hasty = new RpcCaller({
      exchanges: [limited],
      clock,
      random: seededRandom(1),
      log: silentLog,
      retryForMs: 2_000,
    });
    expect(await codeOf(read(hasty))).toBe("TAPE_RATE_LIMITED");
  });
});

describe("a response", () => {
  it.each([
    ["that is no JSON", { status: 200, headers: {}, body: Buffer.from("<html>") }],
    ["of another shape", ok({ n: "one" })],
    ["with a field too many", ok({ n: 1, more: 2 })],
    ["of a page", { status: 404, headers: { "content-type": "text/html" }, body: Buffer.from("no") }],
    ["that refuses without a problem", { status: 400, headers: {}, body: Buffer.from("{}") }],
  ])("%s is not believed", async (_, answer) => {
    expect(await codeOf(cancel(callerOver(async () => answer)))).toBe("TAPE_BAD_RESPONSE");
  });

  it("with a refusal is the store's own error, with its details", async () => {
    const error = new TapeError("TAPE_RUN_ENDED", "run r has ended", { run: "r", token: 2n ** 60n });
    const received = await cancel(callerOver(async () => refusal(error))).catch((thrown: unknown) => thrown);
    expect(received).toMatchObject({ code: "TAPE_RUN_ENDED", message: error.message, details: { token: 2n ** 60n } });
  });

  it("with a code of a newer server reports that", async () => {
    const newer = refusal(new TapeError("TAPE_RUN_ENDED", "x"));
    const body = Buffer.from(
      Buffer.from(newer.body as Uint8Array)
        .toString()
        .replaceAll("TAPE_RUN_ENDED", "TAPE_LATER"),
    );
    const received = await cancel(callerOver(async () => ({ ...newer, body }))).catch((thrown: unknown) => thrown);
    expect(received).toMatchObject({ code: "TAPE_BAD_RESPONSE", message: expect.stringContaining("TAPE_LATER") });
  });
});

it("is refused by a closed caller, which lets calls in flight end", async () => {
  let answer: () => void = () => {};
  const slow: Transport = () => new Promise((resolve) => (answer = () => resolve(ok({ n: 1 }))));
  const caller = callerOver(slow);
  const under = cancel(caller);
  await new Promise<void>((resolve) => systemClock.immediate(resolve));
  let closed = false;
  const closing = caller.close().then(() => (closed = true));
  expect(await codeOf(cancel(caller))).toBe("TAPE_STORE_CLOSED");
  expect(closed).toBe(false);
  answer();
  expect(await under).toEqual({ n: 1 });
  await closing;
});

describe("an address", () => {
  const rules = { token: true, allowPlain: false };
  it.each([
    ["http://127.0.0.1:7878", { host: "127.0.0.1", port: 7878, secure: false, loopback: true, named: false, base: "" }],
    ["http://[::1]:80/", { host: "::1", port: 80, secure: false, loopback: true, named: false, base: "" }],
    [
      "https://tape.example/v/",
      { host: "tape.example", port: 443, secure: true, loopback: false, named: false, base: "/v" },
    ],
  ])("%s", (text, address) => {
    expect(addressOf(text, rules)).toEqual(address);
  });

  it.each([
    "http://tape.example", // a token in clear
    "http://127.0.0.1.example",
    "ftp://127.0.0.1",
    "https://me:secret@tape.example",
    "https://tape.example/?a=1",
    "tape",
  ])("%s is refused", (text) => {
    expect(() => addressOf(text, rules)).toThrow("TAPE_BAD_STORE_URL");
  });

  it("is accepted in clear text with allowPlain or without a token", () => {
    expect(addressOf("http://tape.example", { token: true, allowPlain: true }).host).toBe("tape.example");
    expect(addressOf("http://tape.example", { token: false, allowPlain: false }).host).toBe("tape.example");
  });
});
