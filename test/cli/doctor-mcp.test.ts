import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { serve } from "../../src/exports/index.ts";
import { program, temporaryFolder } from "./stage.ts";

const bank = fileURLToPath(new URL("../mcp-tools/bank-server.ts", import.meta.url));

describe("durable-tape doctor --mcp", () => {
  it("suggests policies by the hints of a server's tools, and calls none of them", async () => {
    const { code, stdout } = await program("doctor", "--mcp", `${process.execPath} ${bank} ${await temporaryFolder()}`);
    expect(code).toBe(0);
    expect(stdout).toMatch(/ok +mcp +.*bank-server\.ts .* has 3 tools/);
    expect(stdout).toMatch(/ok +mcp +find: \{ semantics: "read" \}\n +The server says so about itself/);
    expect(stdout).toMatch(/ok +mcp +note: \{ semantics: "idempotent" \}/);
    expect(stdout).toMatch(/warn +mcp +pay: may change something/);
  });

  it("reaches a server over HTTP", async () => {
    const serving = await serve({ store: "memory:", port: 0, log: "silent" });
    onTestFinished(() => void serving.stop(1_000));
    const { code, stdout } = await program("doctor", "-o", "json", "--mcp", `${serving.url}/mcp`);
    expect(code).toBe(0);
    const findings = JSON.parse(stdout) as { state: string; message: string }[];
    expect(findings).toHaveLength(16);
    expect(findings).toContainEqual(
      expect.objectContaining({ state: "ok", message: 'list_runs: { semantics: "read" }' }),
    );
    expect(findings).toContainEqual(
      expect.objectContaining({ state: "ok", message: 'start_run: { semantics: "idempotent" }' }),
    );
    expect(findings.filter(({ state }) => state === "warn").map(({ message }) => message.split(":")[0])).toEqual([
      "resolve_effect",
    ]);
  });

  it.each([
    ["a command that does not exist", "no-such-program-anywhere"],
    ["a program that is no server", `${process.execPath} --version`],
    ["a port without a server", "http://127.0.0.1:1/mcp"],
  ])("fails for %s", async (_what, target) => {
    const { code, stdout } = await program("doctor", "--mcp", target);
    expect([code, stdout]).toEqual([1, expect.stringMatching(/fail +mcp +TAPE_BAD_INPUT: --mcp: no server there/)]);
  });
});
