// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is the syntax of the file, not of a template
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { plainEnv } from "./plain-env.ts";
import { project } from "./sidecar.ts";

const program = resolve(import.meta.dirname, "../../bin/durable-tape.js");

function config(yaml: string, args: readonly string[] = [], env: Record<string, string> = {}) {
  const cwd = project({ "tape.yaml": yaml });
  const options = { cwd, encoding: "utf8", env: { ...plainEnv, ...env } } as const;
  return spawnSync(process.execPath, [program, "config", ...args], options);
}

const yaml =
  "tape:\n  store: { url: 'postgres://ada:${PASSWORD:-hunter2}@db/x' }\n  reactors: { outbox: { batch: 5 } }\n";

it("prints every setting with its origin, without secrets", () => {
  const { stdout, status } = config(yaml, [], { TAPE_TENANT: "acme" });
  expect(status).toBe(0);
  const lines = stdout.split("\n").map((line) => line.replaceAll(/ +/g, " "));
  expect(lines).toContain('tape.store.url = "postgres://ada:***@db/x" # tape.yaml:2:17, with PASSWORD');
  expect(lines).toContain('tape.tenant = "acme" # TAPE_TENANT');
  expect(lines).toContain("tape.reactors.outbox.batch = 5 # tape.yaml:3:32");
  expect(lines).toContain("tape.reactors.timers.batch = 50 # default");
  expect(stdout).not.toContain("hunter2");
});

it("prints settings as JSON with -o json", () => {
  const { stdout } = config(yaml, ["-o", "json"]);
  const { settings, file } = JSON.parse(stdout) as { settings: { path: string }[]; file: string };
  expect(file).toBe("tape.yaml");
  expect(settings.find(({ path }) => path === "tape.reactors.outbox.batch")).toEqual({
    path: "tape.reactors.outbox.batch",
    value: 5,
    origin: "tape.yaml:3:32",
    variables: [],
  });
});

it("exits 1 for a bad configuration and 2 for bad usage", () => {
  const bad = config("tap: 1\n");
  expect([bad.status, bad.stderr.split("\n")[0]]).toEqual([
    1,
    "TAPE_BAD_CONFIG: tape.yaml:1:1: unknown key tap in the file; did you mean tape?",
  ]);
  expect(config("", ["-o", "xml"]).status).toBe(2);
  expect(config("", ["--nothing"]).status).toBe(2);
});
