import { describe, expect, it } from "vitest";
import { fromJson, isSealed, type SealedPayload } from "../../src/base/codec.ts";
import { defaultLimits } from "../../src/model/limits.ts";
import { type CodecRequest, codecHandler } from "../../src/seal/codec-handler.ts";
import { PayloadCoder } from "../../src/seal/payload-coder.ts";
import { testCodec, testKey } from "./codec.ts";

const origin = "https://tape.example";
const codec = testCodec();
const seal = async (value: unknown, tenant = "acme", run = "r") => {
  const context = { tenant, kind: "step.done", field: "value", place: `run:${run}`, run };
  const { key, place, data } = (await new PayloadCoder(codec, undefined, defaultLimits).seal(
    value,
    context,
  )) as SealedPayload;
  return { key, place, data };
};

function endpoint(allow: (about: CodecRequest) => boolean = () => true) {
  const handle = codecHandler(codec, { origins: [origin], authorize: (_request, about) => allow(about) });
  return (path: string, body: unknown, headers: Record<string, string> = {}, method = "POST") =>
    handle(
      new Request(`https://codec.example${path}`, {
        method,
        headers: { origin, "content-type": "application/json", ...headers },
        ...(method === "POST" && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      }),
    );
}

describe("codecHandler", () => {
  it("decodes payloads for an allowed caller, with the headers that a browser needs", async () => {
    const requests: CodecRequest[] = [];
    const call = endpoint((about) => requests.push(about) > 0);
    const response = await call("/codec/decode", { tenant: "acme", payloads: [await seal({ at: new Date(5) })] });
    const { payloads } = (await response.json()) as { payloads: { value: unknown }[] };
    expect(fromJson(payloads[0]?.value)).toEqual({ at: new Date(5) });
    expect(response.headers.get("access-control-allow-origin")).toBe(origin);
    expect(response.headers.get("access-control-allow-credentials")).toBe("true");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(requests).toEqual([{ action: "decode", tenant: "acme", places: ["run:r"] }]);
  });

  it("encodes what the dashboard sends, for one run", async () => {
    const response = await endpoint()("/encode", { tenant: "acme", run: "r", payloads: [{ yes: true }] });
    const { payloads } = (await response.json()) as { payloads: { value: unknown }[] };
    const sealed = fromJson(payloads[0]?.value);
    expect(isSealed(sealed) && sealed.place).toBe("run:r");
  });

  it("one payload that cannot be read does not hide the others", async () => {
    const other = testCodec({ keys: { k9: testKey("k9") }, current: "k9" });
    const foreign = await other.encode(Buffer.from("1"), { tenant: "acme", place: "run:r", kind: "a", field: "b" });
    const strange = { key: foreign.key, place: "run:r", data: Buffer.from(foreign.data).toString("base64") };
    const moved = { ...(await seal("secret")), place: "run:other" };
    const body = { tenant: "acme", payloads: [await seal("a"), strange, moved] };
    const { payloads } = (await (await endpoint()("/decode", body)).json()) as { payloads: unknown[] };
    expect(payloads).toEqual([{ value: "a" }, { error: "TAPE_KEY_UNKNOWN" }, { error: "TAPE_PAYLOAD_REFUSED" }]);
    const otherTenant = { ...body, tenant: "globex", payloads: [await seal("a")] };
    const refused = (await (await endpoint()("/decode", otherTenant)).json()) as { payloads: unknown[] };
    expect(refused.payloads).toEqual([{ error: "TAPE_PAYLOAD_REFUSED" }]);
  });

  it("refuses strangers, other origins, other types and what is too large, without a payload", async () => {
    const body = { tenant: "acme", payloads: [await seal("a secret")] };
    const statuses = await Promise.all([
      endpoint(() => false)("/decode", body),
      endpoint()("/decode", body, { origin: "https://evil.example" }),
      endpoint()("/decode", body, { "content-type": "text/plain" }),
      endpoint()("/decode", "not json"),
      endpoint()("/decode", { tenant: "acme" }),
      endpoint()("/decode", { tenant: "acme", payloads: [{ key: "k1" }] }),
      endpoint()("/decode", { tenant: "acme", payloads: Array.from({ length: 1_001 }, () => body.payloads[0]) }),
      endpoint()("/decode", "x".repeat(17 * 1024 * 1024)),
      endpoint()("/encode", { tenant: "acme", payloads: [1] }),
      endpoint()("/other", body),
      endpoint()("/decode", undefined, {}, "GET"),
    ]);
    expect(statuses.map(({ status }) => status)).toEqual([403, 403, 415, 400, 400, 400, 413, 413, 400, 404, 404]);
    for (const one of statuses) expect(await one.text()).not.toContain("a secret");
    expect(statuses[1]?.headers.get("access-control-allow-origin")).toBeNull();
  });

  it("answers preflights of its origins alone, and cannot be made without authorize", async () => {
    const good = await endpoint()("/decode", undefined, {}, "OPTIONS");
    expect([good.status, good.headers.get("access-control-allow-methods")]).toEqual([204, "POST"]);
    const evil = await endpoint()("/decode", undefined, { origin: "https://evil.example" }, "OPTIONS");
    expect(evil.status).toBe(403);
    expect(() => codecHandler(codec, { origins: [origin] } as never)).toThrow(/TAPE_BAD_INPUT/);
    expect(() => codecHandler(codec, { authorize: () => true } as never)).toThrow(/TAPE_BAD_INPUT/);
  });
});
