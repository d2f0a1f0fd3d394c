import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { jsonLog } from "../../src/base/log.ts";
import { safeJson, visible } from "../../src/base/text.ts";
import { screenOn } from "../../src/cli/screen.ts";
import { Tape } from "../../src/host/tape.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { program, temporaryFolder } from "../cli/stage.ts";

/** Sets the title, clears the screen, fills the clipboard; C1 controls; reverses and hides text. */
const evil =
  "a\u001b]0;PWNED\u0007\u001b[2J\u001b]52;c;cm0gLXJmIH4=\u0007\u009b31m\u202egnp.exe\u2066\u200bz\ufeff\u2028q\r\nfine";
// biome-ignore lint/suspicious/noControlCharactersInRegex: these must not occur in the output
const steering = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;

async function scene(): Promise<string> {
  const store = `sqlite:${join(await temporaryFolder(), "tape.db")}`;
  const asks = workflow(evil, async (tape) => {
    tape.progress(evil);
    return tape.gate(gate(evil), { payload: { [evil]: evil } });
  });
  const fails = workflow("fails", async () => Promise.reject(new Error(evil)));
  const app = await Tape.open({ store, runner: createRunner({ workflows: [asks, fails] }), log: "silent" });
  await app.start(asks, { [evil]: evil }, { id: evil, labels: { [evil]: evil } });
  await (await app.start(fails, evil, { id: "failed" })).result().catch(() => {});
  await vi.waitFor(async () => expect(await app.gates.list()).toHaveLength(1), { timeout: 5_000 });
  await app.leases.acquire(evil);
  onTestFinished(() => app.close());
  return store;
}

it("stored text cannot control a terminal, in any command, as a table or as JSON", async () => {
  const store = await scene();
  const commands = [
    ["runs"],
    ["inspect", evil],
    ["inspect", "failed"],
    ["tail", evil],
    ["tail"],
    ["gates"],
    ["status"],
    ["doctor"],
    ["lease", "ls"],
    ["lease", "explain", evil],
    ["lease", "history", evil],
    ["fork", evil, "--plan"],
    ["timers"],
    ["inspect", `${evil} that is not there`],
    ["start", evil, "--id", "failed"],
    ["signal", "missing", evil],
  ];
  for (const command of commands) {
    for (const output of [[], ["-o", "json"]]) {
      const { stdout, stderr } = await program(...command, ...output, "--store", store);
      for (const text of [stdout, stderr]) {
        expect(
          steering.exec(text)?.[0].charCodeAt(0).toString(16),
          `${command[0]} ${output.join(" ")}`,
        ).toBeUndefined();
        // Stored text cannot start a new line.
        expect(text.split("\n")).not.toContain("fine");
      }
    }
  }
  const { stdout } = await program("runs", "-o", "json", "--store", store);
  expect((JSON.parse(stdout) as { id: string }[]).map(({ id }) => id)).toContain(evil); // JSON keeps the text
});

it("command lines to copy quote their arguments", async () => {
  const store = await scene();
  const { stdout } = await program("inspect", evil, "--store", store);
  expect(stdout).toMatch(/durable-tape signal 'a.*' 'a.*' --value JSON/);
});

it("stored text cannot forge colours", () => {
  const output: string[] = [];
  const out = { isTTY: true, write: (text: string) => output.push(text) } as unknown as NodeJS.WriteStream;
  vi.stubEnv("NO_COLOR", undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
  const screen = screenOn(out);
  screen.line(`${screen.bad("bad")} ${"\u001b[32mfine\u001b[0m"} \ufdd032m`);
  expect(output.join("")).toBe("\u001b[31mbad\u001b[0m \\e[32mfine\\e[0m \ufdd032m\n");
});

it("JSON logs and JSON output escape control characters without losing them", () => {
  const written: string[] = [];
  jsonLog((line) => void written.push(line))("warn", "x", { evil });
  expect(written[0]!.slice(0, -1)).not.toMatch(steering);
  expect(JSON.parse(written[0]!)).toMatchObject({ evil });
  expect(JSON.parse(safeJson(JSON.stringify({ evil })))).toEqual({ evil });
  expect(visible("pay \u202e0001 to bob")).toBe("pay \\u202e0001 to bob"); // an approver sees the real order
  expect(visible("Grüße, 日本語, emoji ❤️")).toBe("Grüße, 日本語, emoji ❤️");
});
