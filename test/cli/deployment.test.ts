import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { parseOptions } from "../../src/cli/reactors/options.ts";
import { loadConfig } from "../../src/config/load.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { library, project, Sidecar } from "./sidecar.ts";

const page = readFileSync(resolve(import.meta.dirname, "../../docs/deployment.md"), "utf8");
const sections = page.split(/^## /m).slice(1);
const blocks = (section: string, language: string): string[] =>
  [...section.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))].map(([, text]) => text!);

/** The ways to deploy: the sections with a configuration file. */
const ways = sections.flatMap((section) => {
  const [yaml] = blocks(section, "yaml");
  if (yaml === undefined) return [];
  const lines = blocks(section, "sh").flatMap((text) => text.trim().split("\n"));
  const commands = lines.flatMap((line) => (line.startsWith("npx tape-reactors ") ? [line.split(" ").slice(2)] : []));
  return [{ name: section.split("\n")[0]!, yaml, commands }];
});

const agent = `
import { createRunner, effect, workflow } from ${library};
const send = effect("send", async (what: string) => "sent " + what, { dispatch: "outbox", allowUnsafe: "a test" });
const hello = workflow("hello", async (tape, name: string) => { await tape.sleep(20); return tape.effect(send.with(name)); });
export const buildRunner = () => createRunner({ workflows: [hello], effects: [send] });
`;
const hello = workflow("hello", async (_tape, name: string) => name);
const secrets = { DB_PASSWORD: "s3cret" };

describe("docs/deployment.md", () => {
  it("describes three ways to deploy", () => {
    expect(ways.map(({ name, commands }) => [name, commands.length])).toEqual([
      ["One process", 0],
      ["A sidecar", 1],
      ["One service for each reactor", 5],
    ]);
  });

  it.each(ways)("$name: the configuration and the commands are valid", (way) => {
    const cwd = project({ "tape.yaml": way.yaml });
    const { settings, warnings } = loadConfig({ cwd, env: secrets });
    expect(warnings).toEqual([]);
    expect(settings.agent.runner_factory).toBe("./app/agent.ts#buildRunner");
    for (const command of way.commands) {
      const options = parseOptions(command);
      if (typeof options === "string" || "fault" in options) throw new Error(`${command}: ${JSON.stringify(options)}`);
      for (const name of options.only ?? []) expect(Object.keys(settings.tape.reactors)).toContain(name);
    }
  });

  it.each(ways.filter(({ commands }) => commands.length > 0))(
    "$name: the processes finish a run and stop cleanly",
    async ({ yaml, commands }) => {
      const folder = project({ "tape.yaml": yaml, "app/agent.ts": agent });
      const url = `sqlite:${resolve(folder, "tape.db")}`;
      const store = await openStore(url);
      const app = await Tape.open({ store, runner: createRunner({ workflows: [hello] }), work: false });
      onTestFinished(async () => {
        await app.close();
        await store.close();
      });
      const all = commands.map((command) => new Sidecar(folder, command, { ...secrets, TAPE_STORE_URL: url }));
      const started = await Promise.all(all.map((sidecar) => sidecar.until(() => sidecar.logged("reactors.started"))));
      const names = started.flatMap(({ reactors }) => reactors as string[]);
      expect(names).toEqual(["recovery", "reconciler", "outbox", "timers", "compensation"]);
      expect(await (await app.start(hello, "ada")).result()).toBe("sent ada");
      expect(await Promise.all(all.map((sidecar) => sidecar.stop()))).toEqual(all.map(() => 0));
    },
  );
});
