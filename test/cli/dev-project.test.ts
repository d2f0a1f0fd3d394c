import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import { Dev, processesWith, runnersIn } from "./dev-stage.ts";
import { library, project } from "./sidecar.ts";
import { program } from "./stage.ts";

const agent = (answer: string) => `
import { createRunner, workflow } from ${library};
import { answer } from "./parts/answer.ts";
const greet = workflow("greet", async (tape) => \`${answer} \${await tape.step("answer", () => answer)}\`);
export const buildRunner = () => createRunner({ workflows: [greet] });
`;
const files = {
  "tape.yaml": `
agent: { runner_factory: ./app/agent.ts#buildRunner }
tape: { store: { url: "sqlite:./tape.db" }, server: { listen: "127.0.0.1:0" } }
`,
  "app/agent.ts": agent("one"),
  "app/parts/answer.ts": 'export const answer = "a";',
};

describe("dev with a project", () => {
  it("reloads on change, survives failing runners, and leaves no process", {
    timeout: 90_000,
  }, async () => {
    const folder = project(files);
    const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
    const dev = Dev.plain([], folder);
    await dev.says(/page +http:\/\/127\.0\.0\.1:\d+[\s\S]*runner +\.\/app\/agent\.ts#buildRunner/);
    await dev.says(/the runner is up: recovery, reconciler, outbox, timers, compensation/);
    // Every user of the machine can read arguments, and a store's URL may contain a password.
    const [runner] = runnersIn(folder);
    expect(readFileSync(`/proc/${runner}/cmdline`, "utf8")).not.toContain("tape.db");
    expect(readFileSync(`/proc/${runner}/environ`, "utf8")).toContain("TAPE_STORE_URL=sqlite:");
    const app = await Tape.open({
      store: `sqlite:${join(folder, "tape.db")}`,
      runner: createRunner({ workflows: [] }),
      work: false,
    });
    onTestFinished(() => app.close());
    const outcome = async (id: string) => {
      await app.store.intake.createRuns(app.tenant, [{ id, workflow: "greet", input: null }]);
      return (await app.run(id)).result();
    };
    expect(await outcome("r1")).toBe("one a");

    let from = dev.mark();
    write("app/agent.ts", agent("two"));
    await dev.says(/agent\.ts changed[\s\S]*the runner is up/, from);
    expect(await outcome("r2")).toBe("two a");

    from = dev.mark();
    write("app/parts/answer.ts", "export const answer = ;");
    await dev.says(/TAPE_BAD_MODULE[\s\S]*the runner did not start; waiting for a file change/, from);
    expect(runnersIn(folder)).toEqual([]); // the old process has exited, and no new one starts
    from = dev.mark();
    mkdirSync(join(folder, "app/more")); // not a source file
    write("app/parts/answer.ts", 'export const answer = "b";');
    await dev.says(/answer\.ts changed[\s\S]*the runner is up/, from);
    expect(await outcome("r3")).toBe("two b");

    from = dev.mark();
    const [child] = runnersIn(folder);
    // The store's URL may contain a password, and every user of the machine can read command lines.
    expect(processesWith(join(folder, "tape.db"))).toEqual([]);
    process.kill(child!, "SIGKILL");
    await dev.says(/the runner died \(SIGKILL\); restarting in 0\.25 s[\s\S]*the runner is up/, from);
    expect(await outcome("r4")).toBe("two b");

    dev.process.kill("SIGTERM");
    expect(await dev.ended()).toBe(0);
    expect(dev.text().endsWith("stopped\n")).toBe(true);
    expect(processesWith(folder)).toEqual([]);
  });

  it("stops on q on a terminal, and serves until then", async () => {
    const folder = project(files);
    const dev = Dev.inTerminal([], folder);
    const [, url] = await dev.says(/page +(http:\S+)/);
    await dev.says(/keys +o open the page · q quit/);
    const health = await fetch(`${url}/healthz`);
    expect(health.status).toBe(200);
    const foreign = get(`${url}/`, { headers: { host: "elsewhere.example" } }); // DNS rebinding: another name that leads here
    const [rejected] = (await once(foreign, "response")) as [IncomingMessage];
    expect(rejected.statusCode).toBe(403);
    rejected.resume();
    await dev.says(/the runner is up/);
    dev.press("q");
    expect(await dev.ended()).toBe(0);
    expect(dev.text()).toContain("the runner drains and releases its leases");
    expect(processesWith(folder)).toEqual([]);
  });

  it.each([
    ["a store in memory", ["--store", "memory:"], 1, /other processes cannot see/],
    ["a store behind a server", ["--store", "http://127.0.0.1:1"], 1, /dev serves the store itself/],
    ["a store for one process", ["--store", "sqlite:./x.db?processes=single"], 1, /from two processes/],
    ["--once with a runner", ["--once"], 2, /omit --once/],
  ])("rejects %s", async (_, args, code, message) => {
    const folder = project(files);
    const output = await program("dev", "--config", join(folder, "tape.yaml"), ...args);
    expect({ code: output.code, stdout: output.stdout }).toEqual({ code, stdout: "" });
    expect(output.stderr).toMatch(message);
  });

  it("rejects a tape.yaml without a runner instead of running the demo", async () => {
    const folder = project({ "tape.yaml": "project: { name: mine }" });
    const output = await program("dev", "--config", join(folder, "tape.yaml"));
    expect(output.code).toBe(1);
    expect(output.stderr).toContain("agent.runner_factory: dev needs your runner");
  });
});
