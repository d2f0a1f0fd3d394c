import { afterEach, describe, expect, it, vi } from "vitest";
import { main } from "../../src/cli/main.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** The exit code, and what it says to whoever called it. */
async function served(...words: string[]): Promise<{ code: number; said: string }> {
  let said = "";
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    said += String(text);
    return true;
  });
  const code = await main(["serve", "--store", "memory:", ...words]);
  return { code, said };
}

describe("durable-tape serve", () => {
  it("does not start where everybody could reach it, and says what to do", async () => {
    const { code, said } = await served("--listen", "0.0.0.0:0");
    expect(code).toBe(1);
    expect(said).toMatch(/^TAPE_SERVER_EXPOSED: .*0\.0\.0\.0\n.*require credentials/);
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
    const { code, said } = await served(...words);
    expect(said).toMatch(message);
    expect(code).toBe(1);
  });

  it("what it does not understand is a misuse", async () => {
    expect((await served("--lissten", "x")).code).toBe(2);
  });
});
