import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import { Dev, processesWith, runnersIn } from "./dev-stage.ts";
import { library, project } from "./reactors-stage.ts";
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

describe("dev with a runner of one's own", () => {
  it("reloads on change, outlives what does not load and what dies, and leaves nothing behind", {
    timeout: 90_000,
  }, async () => {
    const folder = project(files);
    const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
    const dev = Dev.plain([], folder);
    await dev.says(/page +http:\/\/127\.0\.0\.1:\d+[\s\S]*runner +\.\/app\/agent\.ts#buildRunner/);
    await dev.says(/the runner is up: recovery, reconciler, outbox, timers, compensation/);
    // Arguments are there for every user of the machine to read, and a store's URL may hold a password.
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
    await dev.says(/agent\.ts has changed[\s\S]*the runner is up/, from);
    expect(await outcome("r2")).toBe("two a");

    from = dev.mark();
    write("app/parts/answer.ts", "export const answer = ;");
    await dev.says(/TAPE_BAD_MODULE[\s\S]*the runner did not start; it waits for a change/, from);
    expect(runnersIn(folder)).toEqual([]); // the old one is gone, and no new one tries
    from = dev.mark();
    mkdirSync(join(folder, "app/more")); // no change that counts
    write("app/parts/answer.ts", 'export const answer = "b";');
    await dev.says(/answer\.ts has changed[\s\S]*the runner is up/, from);
    expect(await outcome("r3")).toBe("two b");

    from = dev.mark();
    const [child] = runnersIn(folder);
    // Its store may have a password, and every user of the machine reads command lines.
    expect(processesWith(join(folder, "tape.db"))).toEqual([]);
    process.kill(child!, "SIGKILL");
    await dev.says(/the runner died \(SIGKILL\); the next one starts in 0\.25 s[\s\S]*the runner is up/, from);
    expect(await outcome("r4")).toBe("two b");

    dev.process.kill("SIGTERM");
    expect(await dev.ended()).toBe(0);
    expect(dev.text().endsWith("stopped\n")).toBe(true);
    expect(processesWith(folder)).toEqual([]);
  });

  it("on a terminal q stops it; the server answers until then", async () => {
    const folder = project(files);
    const dev = Dev.inTerminal([], folder);
    const [, url] = await dev.says(/page +(http:\S+)/);
    await dev.says(/keys +o open the page · q quit/);
    const health = await fetch(`${url}/healthz`);
    expect(health.status).toBe(200);
    const foreign = get(`${url}/`, { headers: { host: "elsewhere.example" } }); // a name that was made to lead here
    const [refused] = (await once(foreign, "response")) as [IncomingMessage];
    expect(refused.statusCode).toBe(403);
    refused.resume();
    await dev.says(/the runner is up/);
    dev.press("q");
    expect(await dev.ended()).toBe(0);
    expect(dev.text()).toContain("the runner drains and gives back what it holds");
    expect(processesWith(folder)).toEqual([]);
  });

  it.each([
    ["a store in memory", ["--store", "memory:"], 1, /no other process can see/],
    ["a store behind a server", ["--store", "http://127.0.0.1:1"], 1, /dev serves a store itself/],
    ["a store for one process", ["--store", "sqlite:./x.db?processes=single"], 1, /for two processes/],
    ["--once with a runner", ["--once"], 2, /leave --once out/],
  ])("refuses %s", async (_, args, code, says) => {
    const folder = project(files);
    const said = await program("dev", "--config", join(folder, "tape.yaml"), ...args);
    expect({ code: said.code, stdout: said.stdout }).toEqual({ code, stdout: "" });
    expect(said.stderr).toMatch(says);
  });

  it("a tape.yaml without a runner is no reason to play the treasury", async () => {
    const folder = project({ "tape.yaml": "project: { name: mine }" });
    const said = await program("dev", "--config", join(folder, "tape.yaml"));
    expect(said.code).toBe(1);
    expect(said.stderr).toContain("agent.runner_factory: dev needs your runner");
  });
});
