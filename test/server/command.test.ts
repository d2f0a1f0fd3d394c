import { afterEach, describe, expect, it, vi } from "vitest";
import { main } from "../../src/cli/main.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** The exit code and the output. */
async function served(...words: string[]): Promise<{ code: number; output: string }> {
  let output = "";
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    output += String(text);
    return true;
  });
  const code = await main(["serve", "--store", "memory:", ...words]);
  return { code, output };
}

describe("durable-tape serve", () => {
  it("refuses to start on an exposed address, and names the fix", async () => {
    const { code, output } = await served("--listen", "0.0.0.0:0");
    expect(code).toBe(1);
    expect(output).toMatch(/^TAPE_SERVER_EXPOSED: .*0\.0\.0\.0\n.*require credentials/);
  });

  it.each([
    ["an address without a port", ["--listen", "localhost"], /tape\.server\.listen must be HOST:PORT/],
    ["a port that is none", ["--listen", "localhost:70000"], /tape\.server\.listen/],
    [
      "a certificate that is not there",
      ["--set", "tape.server.tls.cert=/nowhere/c.pem", "--set", "tape.server.tls.key=/nowhere/k.pem"],
      /tape\.server\.tls\.cert: .*ENOENT/,
    ],
    ["a setting that does not exist", ["--set", "tape.server.lissten=x"], /tape\.server\.lissten/],
    [
      "a bootstrap token that is too short",
      [
        "--listen",
        "127.0.0.1:0",
        "--set",
        "tape.server.credentials=required",
        "--set",
        "tape.server.bootstrap_token=a.b",
      ],
      /bootstrap_token must be id\.secret/,
    ],
  ])("%s is refused at the start", async (_what, words, message) => {
    const { code, output } = await served(...words);
    expect(output).toMatch(message);
    expect(code).toBe(1);
  });

  it("exits with a usage error for unknown arguments", async () => {
    expect((await served("--lissten", "x")).code).toBe(2);
  });
});
