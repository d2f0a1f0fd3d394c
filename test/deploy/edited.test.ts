import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { parse, UsageError } from "../../src/cli/command.ts";
import { deploy } from "../../src/cli/commands/deploy.ts";
import { screenOn } from "../../src/cli/screen.ts";
import { unifiedDiff } from "../../src/deploy/diff.ts";
import { project } from "../cli/sidecar.ts";
import { sample } from "./sample.ts";

interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A project in which the command runs, as the program runs it. */
class Stage {
  readonly folder = project({ "tape.yaml": sample });
  readonly out = join(this.folder, "deploy", "kubernetes");

  async run(...options: string[]): Promise<Result> {
    const written = { stdout: "", stderr: "" };
    const spies = (["stdout", "stderr"] as const).map((name) =>
      vi.spyOn(process[name], "write").mockImplementation((text) => {
        written[name] += String(text);
        return true;
      }),
    );
    onTestFinished(() => spies.forEach((spy) => void spy.mockRestore()));
    const argv = ["kubernetes", "--config", join(this.folder, "tape.yaml"), "--out", this.out, ...options];
    const code = await deploy.run(parse(deploy, argv, screenOn(process.stdout)));
    for (const spy of spies) spy.mockRestore();
    return { code, ...written };
  }

  path = (file: string): string => join(this.out, file);
  read = (file: string): string => readFileSync(this.path(file), "utf8");
  change = (from: string, to: string): void => writeFileSync(join(this.folder, "tape.yaml"), sample.replace(from, to));
}

const outbox = "tape-reactor-outbox.yaml";

describe("durable-tape deploy", () => {
  it("writes the files once, and finds nothing to do the second time", async () => {
    const stage = new Stage();
    expect(await stage.run("--check")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("is not what tape.yaml gives"),
    });
    expect(existsSync(stage.out)).toBe(false);
    expect(await stage.run()).toMatchObject({ code: 0, stdout: expect.stringContaining("17 files, 17 changed") });
    expect(statSync(stage.path("deploy.sh")).mode & 0o777).toBe(0o755);
    expect(await stage.run()).toMatchObject({ code: 0, stdout: expect.stringContaining("is up to date: 17 files") });
    expect((await stage.run("--check")).code).toBe(0);
  });

  it("does not overwrite an edited file, and lists it: exit 3", async () => {
    const stage = new Stage();
    await stage.run();
    const edited = `${stage.read(outbox)}# by hand\n`;
    writeFileSync(stage.path(outbox), edited);
    stage.change("max: 10", "max: 12");
    const before = stage.read("tape-server.yaml");
    for (const option of [[], ["--check"], ["--dry-run"]]) {
      const { code, stderr } = await stage.run(...option);
      expect([code, stderr]).toEqual([3, expect.stringMatching(/TAPE_DEPLOY_EDITED.*: tape-reactor-outbox\.yaml\n/)]);
      expect(stage.read(outbox)).toBe(edited);
      expect(stage.read("tape-server.yaml")).toBe(before);
    }
    expect((await stage.run("--force")).code).toBe(0);
    expect(stage.read(outbox)).toContain("maxReplicaCount: 12");
    expect((await stage.run("--check")).code).toBe(0);
  });

  it("does not overwrite a file that it did not write", async () => {
    const stage = new Stage();
    mkdirSync(stage.out, { recursive: true });
    writeFileSync(stage.path("README.md"), "mine\n");
    expect((await stage.run()).code).toBe(3);
    expect(stage.read("README.md")).toBe("mine\n");
    expect(existsSync(stage.path(outbox))).toBe(false);
  });

  it("prints a unified diff with --dry-run, and writes nothing", async () => {
    const stage = new Stage();
    await stage.run();
    stage.change("max: 10", "max: 12");
    const { code, stdout } = await stage.run("--dry-run");
    expect(code).toBe(0);
    expect(stdout).toContain(`--- a/${outbox}\n+++ b/${outbox}\n@@ -`);
    expect(stdout).toContain("\n-  maxReplicaCount: 10\n+  maxReplicaCount: 12\n");
    expect(stage.read(outbox)).toContain("maxReplicaCount: 10");
  });

  it("removes the files of a reactor that is gone, unless they were edited", async () => {
    const stage = new Stage();
    await stage.run();
    const custom = '    reap-aged: { handler: "./app/reap.ts#reap" }\n';
    stage.change(custom, "");
    writeFileSync(stage.path("tape-reactor-reap-aged.yaml"), "edited\n");
    expect((await stage.run()).code).toBe(3);
    expect(stage.read("tape-reactor-reap-aged.yaml")).toBe("edited\n");
    expect((await stage.run("--force")).code).toBe(0);
    expect(existsSync(stage.path("tape-reactor-reap-aged.yaml"))).toBe(false);
  });

  it("writes again what was deleted, and does not trust a damaged list of hashes", async () => {
    const stage = new Stage();
    await stage.run();
    writeFileSync(stage.path(".tape-deploy.json"), '{ "files": { "../../tape.yaml": "x" ');
    expect((await stage.run()).code).toBe(0);
    writeFileSync(stage.path(".tape-deploy.json"), '{ "files": { "../../tape.yaml": "x" } }');
    expect((await stage.run()).code).toBe(0);
    expect(existsSync(join(stage.folder, "tape.yaml"))).toBe(true);
  });

  it("names the targets for a misspelt one, and takes one of three options", async () => {
    const run = async (...argv: string[]) => deploy.run(parse(deploy, argv, screenOn(process.stdout)));
    await expect(run("kubernets")).rejects.toThrow(UsageError);
    await expect(run("kubernets")).rejects.toThrow("did you mean kubernetes?");
    await expect(run("gcp", "--check", "--force")).rejects.toThrow("use only one of");
  });
});

describe("unifiedDiff", () => {
  it("shows changes with three lines of context, and joins those that touch", () => {
    const before = Array.from({ length: 30 }, (_, k) => `line ${k + 1}`);
    const after = before.with(4, "five").with(9, "ten").toSpliced(25, 1);
    expect(unifiedDiff("x", `${before.join("\n")}\n`, `${after.join("\n")}\n`).split("\n")).toEqual([
      ...["--- a/x", "+++ b/x", "@@ -2,12 +2,12 @@", " line 2", " line 3", " line 4", "-line 5", "+five"],
      ...[" line 6", " line 7", " line 8", " line 9", "-line 10", "+ten", " line 11", " line 12", " line 13"],
      ...["@@ -23,7 +23,6 @@", " line 23", " line 24", " line 25", "-line 26", " line 27", " line 28", " line 29"],
    ]);
  });

  it("names /dev/null for a file that is new or removed, and is empty for equal texts", () => {
    expect(unifiedDiff("x", undefined, "a\n")).toBe("--- /dev/null\n+++ b/x\n@@ -0,0 +1,1 @@\n+a");
    expect(unifiedDiff("x", "a\n", undefined)).toBe("--- a/x\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a");
    expect(unifiedDiff("x", "a\n", "a\n")).toBe("");
  });
});
