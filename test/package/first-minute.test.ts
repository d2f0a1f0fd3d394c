import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inlined } from "../../tools/build/inlined.ts";
import { entryPointsOf, importedLate, loadOn, manifestOf } from "./old-node.ts";
import { filesBelow, loadedBy, packagesImported, program } from "./published.ts";
import { type ProgramResult, packTarball, runIn, runInShell, type Tarball } from "./tarball.ts";

/** The commands that a text of ours shows: lines that are indented, or blocks for the second terminal. */
const indented = (text: string): string[] => [...text.matchAll(/^ {2}(\S.*)$/gm)].map(([, command]) => command!);
const quickstart = (): string[] =>
  [
    ...readFileSync(new URL("../../docs/quickstart.md", import.meta.url), "utf8").matchAll(
      /^```sh second\n([^`]*)```/gm,
    ),
  ].flatMap(([, block]) => block!.trim().split("\n"));

/** The first minute of a new user: from an empty folder, with the published files and no install script. */
describe("the first minute", () => {
  let tarball: Tarball;
  let folder = "";
  let project = "";
  let dev: ChildProcess | undefined;
  let screen = "";
  let printed: string[] = [];
  const type = (command: string): ProgramResult => runInShell(project, command);
  const tape = (...args: string[]): ProgramResult => runIn(project, "node_modules/.bin/durable-tape", args);

  beforeAll(() => {
    tarball = packTarball();
    folder = mkdtempSync(join(tmpdir(), "tape-first-"));
    project = join(folder, "my-payments");
  }, 120_000);
  afterAll(async () => {
    if (dev !== undefined && dev.exitCode === null) {
      dev.kill("SIGTERM");
      await new Promise((resolve) => dev!.once("exit", resolve));
    }
    tarball?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  it("init makes a project under the folder's name, and rejects a folder that is not empty", () => {
    const program = join(tarball.unpacked, "bin", "durable-tape.js");
    const made = runIn(folder, program, ["init", "my-payments"]);
    expect(made).toMatchObject({ code: 0, stderr: "" });
    printed = indented(made.stdout);
    expect(printed[0]).toBe("cd my-payments && npm install");
    expect(runIn(folder, program, ["init", "my-payments"])).toMatchObject({ code: 2, stdout: "" });
    const { name, dependencies } = JSON.parse(readFileSync(join(project, "package.json"), "utf8")) as {
      name: string;
      dependencies: Record<string, string>;
    };
    expect(name).toBe("my-payments");
    // By path, because it is in no registry: the command that `init` prints must find exactly this version.
    expect(dependencies["durable-tape"]).toBe(`file:${tarball.unpacked}`);
    expect(readFileSync(join(project, ".gitignore"), "utf8")).toContain(".tape/");
    tarball.install(project);
  });

  it("its types compile by its tsconfig, which checks those of the package, too", () => {
    writeFileSync(join(project, "test", "types.ts"), program);
    const typescript = createRequire(import.meta.url).resolve("typescript/package.json");
    const types = join(dirname(typescript), "../@types");
    const { version } = JSON.parse(readFileSync(typescript, "utf8")) as { version: string };
    expect(manifestOf(project).devDependencies?.typescript).toBe(`^${version.split(".")[0]}.0.0`);
    const args = [join(dirname(typescript), "bin", "tsc"), "--noEmit", "--typeRoots", types];
    const { status, stdout } = spawnSync(process.execPath, args, { cwd: project, encoding: "utf8" });
    expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
  }, 60_000);

  it("publishes few files that need one package, and lists inlined licences", () => {
    // npm's time depends on their number; there were 1149 before they were bundled.
    const files = filesBelow(tarball.unpacked).filter((path) => !path.startsWith("docs/"));
    expect(files.length).toBeLessThan(130);
    expect(packagesImported(tarball.unpacked)).toEqual(["pg"]);
    const peers = Object.keys(manifestOf(tarball.unpacked).peerDependencies!);
    for (const specifier of packagesImported(tarball.unpacked, true))
      expect(peers).toContain(/^(@[^/]+\/)?[^/]+/.exec(specifier)![0]);
    const licences = readFileSync(join(tarball.unpacked, "dist", "THIRD-PARTY-LICENCES.txt"), "utf8");
    for (const name of [...inlined, "react", "scheduler", "@tanstack/query-core"]) {
      expect(licences).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(\\w+\\)\n\n.{20}`, "ms"));
    }
  });

  it("has the schemas of events, by the name that programs import", () => {
    const text = `import schemas from "durable-tape/events.schema.json" with { type: "json" };
      console.log(schemas.$defs["run.ended"].$id);`;
    const { stdout } = runIn(project, "--input-type=module", ["--eval", text]);
    expect(stdout).toBe("urn:tape:event:run.ended:1\n");
  });

  it("an embedded program loads neither an unused store driver nor the network", () => {
    const loaded = loadedBy(tarball.unpacked, "exports-index.js");
    expect(loaded).toContain("node:crypto");
    const network = ["node:http", "node:https", "node:tls", "node:zlib"];
    const unneeded = (names: readonly string[]) =>
      names.filter((name) => !/^(node:|\.\.\/bin\/needs-node\.js$)/.test(name) || network.includes(name));
    expect(unneeded(loaded)).toEqual([]);
    // Nor does the sink of a broker, before it is used: its client is an optional package.
    for (const broker of ["kafka", "nats", "redis"]) {
      expect(unneeded(loadedBy(tarball.unpacked, `exports-${broker}.js`))).toEqual([]);
    }
  });

  it.each(["import", "require"] as const)("%s on an old Node fails with one sentence, by every name", (way) => {
    const names = entryPointsOf(tarball.unpacked, way === "require");
    expect(names.length).toBeGreaterThan(7);
    const { stdout, stderr } = runIn(project, "--input-type=module", ["--eval", loadOn("20.20.2", way, names)]);
    const sentence = /^TAPE_NODE_OUTDATED durable-tape needs Node 24\.14\.1 .*; this is v20\.20\.2\. Install it from /;
    expect({ lines: stdout.trim().split("\n"), stderr }).toEqual({
      lines: names.map(() => expect.stringMatching(sentence) as string),
      stderr: "",
    });
  });

  it("links on old versions, so that the sentence is their error", () => {
    for (const name of entryPointsOf(tarball.unpacked, true)) {
      const file = `${name.replace(/^durable-tape\/?/, "exports-").replace(/-$/, "-index")}.js`;
      const text = readFileSync(
        join(tarball.unpacked, "dist", file.replace("exports-testing", "testkit-index")),
        "utf8",
      );
      expect(text).toMatch(/^import "\.\.\/bin\/needs-node\.js";\n/);
    }
    expect(importedLate(tarball.unpacked)).toEqual([]);
  });

  it("a demo finds the programs that it starts", () => {
    const { code, stdout } = tape("demo", "unknown");
    expect(stdout).toMatch(/run: COMPLETED\nworld: 1 wire\n$/);
    expect(code).toBe(0);
  });

  it("every command that init prints works, and a payment that is killed by hand is made once", async () => {
    const [, test, start, ...others] = printed;
    expect([test, start]).toEqual(["npm test", "npm start"]);
    expect(type("npm test").stdout).toMatch(/pass 1\n[\s\S]*fail 0/);
    expect(manifestOf(project).scripts).toMatchObject({ start: "durable-tape dev", check: "tsc --noEmit" });
    dev = spawn(process.execPath, ["node_modules/.bin/durable-tape", "dev"], {
      cwd: project,
      env: { PATH: process.env.PATH, HOME: project, TAPE_SERVER_LISTEN: "127.0.0.1:0", BANK_SECONDS: "8" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [dev.stdout!, dev.stderr!]) stream.on("data", (data: Buffer) => (screen += data.toString()));
    await expect.poll(() => screen, { timeout: 30_000 }).toMatch(/http:\/\/127\.0\.0\.1:\d+/);
    const address = /http:\/\/127\.0\.0\.1:\d+/.exec(screen)![0];
    await expect.poll(async () => (await fetch(`${address}/readyz`)).status, { timeout: 20_000 }).toBe(200);
    expect(type(others[0]!)).toMatchObject({ code: 0, stdout: "pay-7\n" });
    await expect.poll(() => screen, { timeout: 30_000 }).toMatch(/kill -9 \d+[\s\S]*bank: invoice 7 is paid/);
    expect(type(/kill -9 \d+/.exec(screen)![0])).toMatchObject({ code: 0 });
    await expect
      .poll(() => type(others[1]!).stdout, { timeout: 60_000 })
      .toMatch(/pay-7 {2}COMPLETED {2}pay[\s\S]* 2 /);
    expect(screen).toMatch(/the runner died \(SIGKILL\); restarting/);
    await expect.poll(() => screen).toContain("bank: is invoice 7 paid? yes");
    const [again, inspect, history, world, ...rest] = quickstart();
    expect([again, inspect, rest]).toEqual([others[0], others[1], []]);
    expect(type(history!).stdout).toMatch(/TOKEN +OWNER[\s\S]* 1 .*expired[\s\S]* 2 /);
    expect(type(world!).stdout).toMatch(/^\{"id":"W-1","invoice":"7"\}\n$/);
    dev.kill("SIGTERM");
    const code = await new Promise((resolve) => dev!.once("exit", resolve));
    expect(code).toBe(0);
  }, 150_000);
});
