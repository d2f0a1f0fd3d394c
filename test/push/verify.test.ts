import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { googleOidc } from "../../src/push/verify/google.ts";
import { sharedSecret, unverified } from "../../src/push/verify/secret.ts";
import type { Verdict, Verify } from "../../src/push/verify/verify.ts";
import { webhookSignature } from "../../src/push/verify/webhook.ts";
import { ManualClock } from "../../testkit/clock.ts";

const statusOf = (verdict: Verdict): number => (verdict.ok ? 204 : verdict.status);
const check = async (verify: Verify, headers: Record<string, string>, body = ""): Promise<number> =>
  statusOf(await verify.check(new Headers(headers), new TextEncoder().encode(body)));

describe("googleOidc", () => {
  const audience = "https://push.example/recovery";
  const email = "push@my-project.iam.gserviceaccount.com";
  let own: Awaited<ReturnType<typeof generateKeyPair>>;
  let foreign: typeof own;
  beforeAll(async () => {
    [own, foreign] = await Promise.all([generateKeyPair("RS256"), generateKeyPair("RS256")]);
  });

  /** Serves the public key, as Google does, and verifies against it. The tokens are signed here, not by Google. */
  async function verifier(status = 200, ...more: object[]): Promise<Verify> {
    const keys = [{ ...(await exportJWK(own.publicKey)), kid: "k1", alg: "RS256", use: "sig" }, ...more];
    const server = createServer((_, response) => response.writeHead(status).end(JSON.stringify({ keys })));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    return googleOidc({ audience, email, keys: `http://127.0.0.1:${(server.address() as AddressInfo).port}/certs` });
  }

  interface Claims {
    readonly iss?: string;
    readonly aud?: string;
    readonly email?: string | undefined;
    readonly verified?: unknown;
    readonly exp?: string;
    readonly alg?: string;
    readonly key?: typeof own;
  }

  async function tokenOf(claims: Claims): Promise<string> {
    const { iss = "https://accounts.google.com", aud = audience, exp = "1h", verified = true, key = own } = claims;
    const payload = { email: "email" in claims ? claims.email : email, email_verified: verified };
    const token = new SignJWT(payload).setProtectedHeader({ alg: "RS256", kid: "k1" }).setIssuedAt();
    return token.setIssuer(iss).setAudience(aud).setExpirationTime(exp).sign(key.privateKey);
  }

  it("accepts a token of the account, and refuses each claim that is wrong", async () => {
    const verify = await verifier();
    const sent = async (claims: Claims): Promise<number> =>
      check(verify, { authorization: `Bearer ${await tokenOf(claims)}` });
    expect(await sent({})).toBe(204);
    expect(await sent({ iss: "accounts.google.com" })).toBe(204);
    expect(await sent({ iss: "https://accounts.google.com.evil.example" })).toBe(401);
    expect(await sent({ aud: "https://other.example" })).toBe(401);
    expect(await sent({ exp: "-2m" })).toBe(401);
    expect(await sent({ key: foreign })).toBe(401);
    expect(await sent({ email: "other@my-project.iam.gserviceaccount.com" })).toBe(403);
    expect(await sent({ email: undefined })).toBe(401);
    expect(await sent({ verified: false })).toBe(403);
    expect(await sent({ verified: "true" })).toBe(403);
  });

  it("refuses other algorithms, no token, and rubbish", async () => {
    const verify = await verifier();
    const secret = new TextEncoder().encode("0123456789012345678901234567890123456789");
    const payload = { email, email_verified: true, iss: "https://accounts.google.com", aud: audience };
    const hmac = await new SignJWT(payload)
      .setProtectedHeader({ alg: "HS256", kid: "k1" })
      .setExpirationTime("1h")
      .sign(secret);
    const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from(JSON.stringify(payload)).toString("base64url")}.x`;
    for (const authorization of [`Bearer ${hmac}`, `Bearer ${none}`, "Bearer x", "Basic a:b", ""]) {
      expect(await check(verify, { authorization })).toBe(401);
    }
    expect(await check(verify, {})).toBe(401);
  });

  it("refuses a valid signature of another algorithm, even if its key is among Google's", async () => {
    const other = await generateKeyPair("ES256");
    const verify = await verifier(200, { ...(await exportJWK(other.publicKey)), kid: "k2" });
    const token = await new SignJWT({ email, email_verified: true })
      .setProtectedHeader({ alg: "ES256", kid: "k2" })
      .setIssuer("https://accounts.google.com")
      .setAudience(audience)
      .setExpirationTime("1h")
      .sign(other.privateKey);
    expect(await check(verify, { authorization: `Bearer ${token}` })).toBe(401);
  });

  it("throws if the keys cannot be had: that is not the caller's fault", async () => {
    const verify = await verifier(500);
    await expect(check(verify, { authorization: `Bearer ${await tokenOf({})}` })).rejects.toThrow();
  });

  it("needs an audience and an account", () => {
    expect(() => googleOidc({ audience: "", email })).toThrow("audience is required");
    expect(() => googleOidc({ audience, email: [] })).toThrow("email is required");
    expect(() => googleOidc({ audience, email, audiences: 1 } as never)).toThrow("audiences");
  });
});

describe("webhookSignature", () => {
  // The example of the specification, standardwebhooks.com.
  const vector = {
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
    timestamp: 1_614_265_330,
    body: '{"test": 2432232314}',
    signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  };
  const at = (seconds: number) => ({ ...new ManualClock(), wall: () => seconds * 1_000 }) as unknown as ManualClock;
  const headers = (more: Record<string, string> = {}): Record<string, string> => ({
    "webhook-id": vector.id,
    "webhook-timestamp": String(vector.timestamp),
    "webhook-signature": vector.signature,
    ...more,
  });
  const verify = (secrets = [vector.secret], now = vector.timestamp) => webhookSignature({ secrets, clock: at(now) });

  it("accepts the example of the specification, and refuses every change to it", async () => {
    expect(await check(verify(), headers(), vector.body)).toBe(204);
    expect(await check(verify(), headers(), `${vector.body} `)).toBe(401);
    expect(await check(verify(), headers({ "webhook-id": "msg_other" }), vector.body)).toBe(401);
    expect(await check(verify(), headers({ "webhook-timestamp": String(vector.timestamp + 1) }), vector.body)).toBe(
      401,
    );
    expect(await check(verify(), headers({ "webhook-timestamp": "now" }), vector.body)).toBe(401);
    expect(await check(verify(), headers({ "webhook-signature": "v1,AAAA" }), vector.body)).toBe(401);
    expect(
      await check(verify(), headers({ "webhook-signature": vector.signature.replace("v1", "v2") }), vector.body),
    ).toBe(401);
    expect(await check(verify(), {}, vector.body)).toBe(401);
  });

  it("accepts five minutes of difference between the clocks, and no more", async () => {
    expect(await check(verify(undefined, vector.timestamp + 300), headers(), vector.body)).toBe(204);
    expect(await check(verify(undefined, vector.timestamp + 301), headers(), vector.body)).toBe(401);
    expect(await check(verify(undefined, vector.timestamp - 301), headers(), vector.body)).toBe(401);
  });

  it("accepts either of two secrets, and either of two signatures", async () => {
    const other = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
    const signed = `${vector.id}.${vector.timestamp}.${vector.body}`;
    const signature = `v1,${createHmac("sha256", Buffer.alloc(24, 7)).update(signed).digest("base64")}`;
    expect(await check(verify([other, vector.secret]), headers(), vector.body)).toBe(204);
    const both = headers({ "webhook-signature": `v1,AAAA ${signature}` });
    expect(await check(verify([other]), both, vector.body)).toBe(204);
    expect(await check(verify(), both, vector.body)).toBe(401);
  });

  it("accepts an ed25519 signature by its public key", async () => {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const key = `whpk_${Buffer.from(publicKey.export({ format: "jwk" }).x!, "base64url").toString("base64")}`;
    const signed = Buffer.from(`${vector.id}.${vector.timestamp}.${vector.body}`);
    const signature = `v1a,${sign(null, signed, privateKey).toString("base64")}`;
    expect(await check(verify([key]), headers({ "webhook-signature": signature }), vector.body)).toBe(204);
    expect(await check(verify([key]), headers({ "webhook-signature": signature }), "{}")).toBe(401);
    expect(await check(verify([key]), headers(), vector.body)).toBe(401);
  });

  it("needs secrets of the right form and length, and does not repeat them", () => {
    for (const secrets of [[], ["hunter2"], ["whsec_AAAA"], [`whpk_${Buffer.alloc(31).toString("base64")}`]]) {
      expect(() => webhookSignature({ secrets })).toThrow("TAPE_BAD_INPUT");
      expect(() => webhookSignature({ secrets })).not.toThrow("hunter2");
    }
  });
});

describe("sharedSecret and unverified", () => {
  const secret = "0123456789abcdef";

  it("accept the secret in the header, bare or as a bearer token", async () => {
    expect(await check(sharedSecret({ secrets: [secret] }), { "x-tape-secret": secret })).toBe(204);
    expect(await check(sharedSecret({ secrets: ["another secret!!", secret] }), { "x-tape-secret": secret })).toBe(204);
    expect(await check(sharedSecret({ secrets: [secret] }), { "x-tape-secret": `${secret}0` })).toBe(401);
    expect(await check(sharedSecret({ secrets: [secret] }), {})).toBe(401);
    const bearer = sharedSecret({ secrets: [secret], header: "Authorization" });
    expect(await check(bearer, { authorization: `Bearer ${secret}` })).toBe(204);
    expect(await check(bearer, { authorization: "Bearer x" })).toBe(401);
  });

  it("need a secret that is long enough, or a reason", async () => {
    expect(() => sharedSecret({ secrets: ["short"] })).toThrow("at least 16 characters");
    expect(() => sharedSecret({ secrets: [] })).toThrow("1 to 10 entries");
    expect(() => unverified(" ")).toThrow("TAPE_UNVERIFIED");
    expect(await check(unverified("the platform checks IAM"), {})).toBe(204);
  });
});
