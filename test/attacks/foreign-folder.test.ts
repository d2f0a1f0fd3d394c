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

/** A stranger's server, and a folder whose tape.yaml names it. */
async function stranger(yaml: (url: string) => string): Promise<IncomingMessage[]> {
  const heard: IncomingMessage[] = [];
  const server = createServer((request, answer) => {
    heard.push(request);
    answer.writeHead(404).end();
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
  return heard;
}

describe("a folder that somebody else has written", () => {
  it("does not get TAPE_TOKEN for the server that its tape.yaml names", async () => {
    const heard = await stranger((url) => `tape: { store: { url: "${url}" } }\n`);
    vi.stubEnv("TAPE_TOKEN", token);
    const said = await program("status");
    expect(said).toMatchObject({ code: 1, stdout: "" });
    expect(said.stderr).toMatch(/TAPE_BAD_CONFIG: TAPE_TOKEN is not sent to 127\.0\.0\.1: only .*tape\.yaml names it/);
    expect(said.stderr).not.toContain(token);
    expect(heard).toEqual([]);
  });

  it("gets it where the user has said so, by the environment or by a flag", async () => {
    const heard = await stranger((url) => `tape: { store: { url: "${url}" } }\n`);
    vi.stubEnv("TAPE_TOKEN", token);
    vi.stubEnv("TAPE_TOKEN_HOST", "127.0.0.1");
    await program("status");
    expect(heard[0]?.headers.authorization).toBe(`Bearer ${token}`);
  });

  it("does not get what variables hold, in the path or in the host", async () => {
    vi.stubEnv("SECRET_OF_MINE", "canary");
    for (const place of [`/\${SECRET_OF_MINE}`, `/x/\${SECRET_OF_MINE:-y}`]) {
      const heard = await stranger((url) => `tape: { store: { url: "${url}${place}" } }\n`);
      const said = await program("status");
      expect(said.code).toBe(1);
      expect(said.stderr).toContain("a server's address must not contain a variable");
      expect(said.stderr).not.toContain("canary");
      expect(heard).toEqual([]);
    }
  });

  it("may take its whole address from a variable: whoever sets it chooses the server", async () => {
    const heard = await stranger((url) => {
      vi.stubEnv("MY_TAPE", url);
      return `tape: { store: { url: "\${MY_TAPE}" } }\n`;
    });
    await program("status");
    expect(heard.length).toBeGreaterThan(0);
  });
});

it("TAPE_TOKEN_HOST binds the token also where a program names the server", () => {
  const env = { TAPE_TOKEN: token, TAPE_TOKEN_HOST: "tape.example, other.example" };
  expect(environmentToken("https://tape.example/x", env)).toBe(token);
  expect(environmentToken(["https://tape.example", "https://OTHER.example:8443"], env)).toBe(token);
  expect(() => environmentToken("https://evil.example", env)).toThrow(/not sent to evil\.example/);
  expect(() => environmentToken("https://tape.example,https://evil.example", env)).toThrow(/evil/);
  expect(environmentToken("https://evil.example", {})).toBeUndefined();
});

describe("a URL that is printed shows no password", () => {
  it.each([
    ["postgres://t:one@pool/db", "postgres://t:***@pool/db"],
    ["postgres://t:a/b?c#d@pool/db", "postgres://t:***@pool/db"],
    ["postgres://t:p@ss@pool/db", "postgres://t:***@pool/db"],
    ["postgres://host:5432/db?application_name=a@b", "postgres://host:5432/db?application_name=a@b"],
    ["postgres://pool/db?password=one&schema=s", "postgres://pool/db?password=***&schema=s"],
    [
      "postgres://t:one@pool/db?pooler=transaction&listen_url=postgres%3A%2F%2Ft%3ATWO%40db%2Fdb",
      "postgres://t:***@pool/db?pooler=transaction&listen_url=postgres%3A%2F%2Ft%3A%2A%2A%2A%40db%2Fdb",
    ],
    ["postgres://pool/db?listen_url=postgres://t:TWO@db/db", "postgres://pool/db?listen_url=postgres://t:***@db/db"],
    ["sqlite:./tape.db?processes=single", "sqlite:./tape.db?processes=single"],
  ])("%s", (url, shown) => {
    expect(maskUrl(url)).toBe(shown);
  });
});
