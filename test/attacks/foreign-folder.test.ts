import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { environmentToken } from "../../src/client/token.ts";
import { maskUrl } from "../../src/config/mask.ts";
import { program, temporaryFolder } from "../cli/stage.ts";

const token = `a.${"b".repeat(43)}`;

/** A foreign server, and a folder whose tape.yaml names it. */
async function stranger(yaml: (url: string) => string): Promise<IncomingMessage[]> {
  const received: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    received.push(request);
    response.writeHead(404).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const folder = await temporaryFolder();
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "tape.yaml"), yaml(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  vi.spyOn(process, "cwd").mockReturnValue(folder);
  onTestFinished(() => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    server.close();
  });
  return received;
}

describe("a folder of unknown origin", () => {
  it("does not get TAPE_TOKEN for the server that its tape.yaml names", async () => {
    const received = await stranger((url) => `tape: { store: { url: "${url}" } }\n`);
    vi.stubEnv("TAPE_TOKEN", token);
    const result = await program("status");
    expect(result).toMatchObject({ code: 1, stdout: "" });
    expect(result.stderr).toMatch(
      /TAPE_BAD_CONFIG: TAPE_TOKEN is not sent to 127\.0\.0\.1: only .*tape\.yaml names it/,
    );
    expect(result.stderr).not.toContain(token);
    expect(received).toEqual([]);
  });

  it("gets it if the environment names the host", async () => {
    const received = await stranger((url) => `tape: { store: { url: "${url}" } }\n`);
    vi.stubEnv("TAPE_TOKEN", token);
    vi.stubEnv("TAPE_TOKEN_HOST", "127.0.0.1");
    await program("status");
    expect(received[0]?.headers.authorization).toBe(`Bearer ${token}`);
  });

  it("does not get the values of variables in the path", async () => {
    vi.stubEnv("SECRET_OF_MINE", "canary");
    for (const place of [`/\${SECRET_OF_MINE}`, `/x/\${SECRET_OF_MINE:-y}`]) {
      const received = await stranger((url) => `tape: { store: { url: "${url}${place}" } }\n`);
      const result = await program("status");
      expect(result.code).toBe(1);
      expect(result.stderr).toContain("a server's address must not contain a variable");
      expect(result.stderr).not.toContain("canary");
      expect(received).toEqual([]);
    }
  });

  it("may take its whole address from a variable, because its owner chooses the server", async () => {
    const received = await stranger((url) => {
      vi.stubEnv("MY_TAPE", url);
      return `tape: { store: { url: "\${MY_TAPE}" } }\n`;
    });
    await program("status");
    expect(received.length).toBeGreaterThan(0);
  });
});

it("TAPE_TOKEN_HOST also restricts the token if a program names the server", () => {
  const env = { TAPE_TOKEN: token, TAPE_TOKEN_HOST: "tape.example, other.example" };
  expect(environmentToken("https://tape.example/x", env)).toBe(token);
  expect(environmentToken(["https://tape.example", "https://OTHER.example:8443"], env)).toBe(token);
  expect(() => environmentToken("https://evil.example", env)).toThrow(/not sent to evil\.example/);
  expect(() => environmentToken("https://tape.example,https://evil.example", env)).toThrow(/evil/);
  expect(environmentToken("https://evil.example", {})).toBeUndefined();
});

describe("a printed URL contains no password", () => {
  it.each([
    ["postgres://t:one@pool/db", "postgres://t:***@pool/db"],
    ["postgres://t:a/b?c#d@pool/db", "postgres://t:***@pool/db"],
    ["postgres://t:p@ss@pool/db", "postgres://t:***@pool/db"],
    ["postgres://t:1234/x@pool/db", "postgres://t:***@pool/db"],
    ["postgres://t:1234?x@pool/db", "postgres://t:***@pool/db"],
    ["postgres://host:5432/db?application_name=a@b", "postgres://host:5432/db?application_name=a@b"],
    ["postgres://pool/db?password=one&schema=s", "postgres://pool/db?password=***&schema=s"],
    [
      "postgres://t:one@pool/db?pooler=transaction&listen_url=postgres%3A%2F%2Ft%3ATWO%40db%2Fdb",
      "postgres://t:***@pool/db?pooler=transaction&listen_url=postgres%3A%2F%2Ft%3A%2A%2A%2A%40db%2Fdb",
    ],
    ["postgres://pool/db?listen_url=postgres://t:TWO@db/db", "postgres://pool/db?listen_url=postgres://t:***@db/db"],
    ["sqlite:./tape.db?processes=single", "sqlite:./tape.db?processes=single"],
  ])("%s", (url, printed) => {
    expect(maskUrl(url)).toBe(printed);
  });
});
