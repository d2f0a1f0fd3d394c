import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { parse } from "yaml";
import { loadConfig } from "../../src/config/load.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import { plainEnv } from "../cli/plain-env.ts";
import { library, project } from "../cli/sidecar.ts";
import { fixture } from "./snippets.ts";

const root = resolve(import.meta.dirname, "../..");
const reactors = ["recovery", "reconciler", "outbox", "timers", "compensation"];
const agent = `
import { createRunner, workflow } from ${library};
const hello = workflow("hello", async (tape, name) => tape.step("greet", () => "hello " + name));
export const build_runner = () => createRunner({ workflows: [hello] });
`;

/** A project with the document's tape.yaml and agent. */
const seedProject = (more: Readonly<Record<string, string>> = {}): string =>
  project({ "tape.yaml": fixture("reactors.yaml"), "app/agent.ts": agent, ...more });

/** Runs a fixture in a shell that finds our programs, as an installed package would have them. */
function shell(
  command: string,
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): { child: ChildProcess; text: () => string } {
  const bin = join(cwd, ".bin");
  mkdirSync(bin);
  const { bin: programs } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    bin: Record<string, string>;
  };
  for (const [name, file] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/sh\nexec '${process.execPath}' '${join(root, file)}' "$@"\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const path = `${bin}${delimiter}${plainEnv.PATH ?? ""}`;
  const child = spawn("sh", ["-c", `exec ${command}`], { cwd, env: { ...plainEnv, ...env, PATH: path } });
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (data: Buffer) => {
      text += data.toString();
    });
  onTestFinished(async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null && child.signalCode === null) await once(child, "close");
  });
  return { child, text: () => text };
}

async function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null) await once(child, "close");
  return child.exitCode;
}

/** Starts a run of the project's workflow from outside, and returns its result. */
async function greeted(folder: string): Promise<unknown> {
  const store = `sqlite:${join(folder, ".tape/tape.db")}`;
  await using app = await Tape.open({ store, runner: createRunner({ workflows: [] }), work: false });
  await app.store.intake.createRuns(app.tenant, [{ id: "r", workflow: "hello", input: "Ada" }]);
  return await (await app.run("r")).result();
}

describe("the seed documents, as written", () => {
  it("leases.yaml is a configuration", () => {
    const cwd = project({ "tape.yaml": fixture("leases.yaml") });
    const { settings, warnings } = loadConfig({ cwd, env: {} });
    expect(settings.tape.reactors.recovery).toMatchObject({ lease_ttl_s: 30, heartbeat_s: 10 });
    expect(warnings).toEqual([]);
  });

  it("reactors.yaml enables the five reactors and names the runner", () => {
    const { settings, warnings } = loadConfig({ cwd: seedProject(), env: {} });
    expect(settings.agent.runner_factory).toBe("app.agent:build_runner");
    expect(Object.keys(settings.tape.reactors)).toEqual(reactors);
    expect(Object.values(settings.tape.reactors).every(({ enabled }) => enabled)).toBe(true);
    expect(warnings).toEqual([]);
  });

  it("tape-reactors.sh runs all five and drives runs", { timeout: 60_000 }, async () => {
    const folder = seedProject();
    const { child, text } = shell(fixture("tape-reactors.sh"), folder);
    await vi.waitFor(() => expect(text()).toContain("reactors.started"), { timeout: 50_000, interval: 50 });
    for (const name of reactors) expect(text()).toContain(name);
    expect(await greeted(folder)).toBe("hello Ada");
    child.kill("SIGTERM");
    expect(await exitOf(child)).toBe(0);
  });

  it("tape-dev.sh runs server, worker and reactors", { timeout: 60_000 }, async () => {
    const folder = seedProject();
    const { child, text } = shell(fixture("tape-dev.sh"), folder, { TAPE_SERVER_LISTEN: "127.0.0.1:0" });
    await vi.waitFor(() => expect(text()).toContain(`the runner is up: ${reactors.join(", ")}`), {
      timeout: 50_000,
      interval: 50,
    });
    expect(text()).toContain("app.agent:build_runner");
    expect(await greeted(folder)).toBe("hello Ada");
    child.kill("SIGTERM");
    expect(await exitOf(child)).toBe(0);
  });

  it("reactor-service, min-instances: tape-deploy.sh renders one for each reactor", { timeout: 60_000 }, async () => {
    const deploy = `  store: { url: "postgres://tape:\${DB_PASSWORD}@db.internal/tape" }
  deploy:
    image: europe-docker.pkg.dev/my-project/tape/app:1
    secrets: { DB_PASSWORD: tape-db-password }
    gcp: { project: my-project, region: europe-west1 }
`;
    const reap = '    reap_aged_obligations: { handler: "app.reap:reap_once" }\n';
    const folder = seedProject({ "tape.yaml": fixture("reactors.yaml") + reap + deploy });
    const { child, text } = shell(fixture("tape-deploy.sh"), folder);
    expect(await exitOf(child), text()).toBe(0);
    const rendered = readdirSync(join(folder, "deploy/gcp"));
    for (const name of [...reactors, "reap-aged-obligations"]) {
      expect(rendered).toContain(`tape-reactor-${name}.yaml`);
      const service = parse(readFileSync(join(folder, `deploy/gcp/tape-reactor-${name}.yaml`), "utf8")) as {
        metadata: { name: string };
        spec: { template: { metadata: { annotations: Record<string, string> } } };
      };
      expect(service.metadata.name).toBe(`tape-reactor-${name}`);
      const { annotations } = service.spec.template.metadata;
      expect(Number(annotations["autoscaling.knative.dev/minScale"])).toBeGreaterThanOrEqual(1);
    }
  });
});
