// npm run deploy-check: renders a sample for every target and runs the checkers over it that are installed on this
// machine. The suite checks the same files with packages of npm; these tools come from no registry. A missing tool is
// reported as NOT RUN. Exits with 1 if a tool finds something.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadDeployConfig } from "../src/config/load-deploy.ts";
import { writeFolder } from "../src/deploy/folder.ts";
import { planDeployment, type Target, targets } from "../src/deploy/plan.ts";
import { render } from "../src/deploy/render.ts";
import { sample } from "../test/deploy/sample-yaml.ts";

interface Check {
  readonly tool: string;
  /** Whether this machine has it. */
  readonly probe: readonly string[];
  readonly target: Target;
  readonly command: (files: readonly string[]) => readonly string[];
}

const ending =
  (end: string) =>
  (files: readonly string[]): string[] =>
    files.filter((file) => file.endsWith(end));

/** The rules for Prometheus are no manifests. */
const manifests = (files: readonly string[]): string[] =>
  ending(".yaml")(files).filter((file) => !/alerts(\.test)?\.yaml$/.test(file));

const checks: readonly Check[] = [
  {
    tool: "systemd-analyze verify",
    probe: ["systemd-analyze", "--version"],
    target: "systemd",
    command: (files) => ["systemd-analyze", "verify", ...ending(".service")(files)],
  },
  ...targets.map((target) => ({
    ...{ tool: "shellcheck", probe: ["shellcheck", "--version"], target },
    command: (files: readonly string[]) => ["shellcheck", ...ending(".sh")(files)],
  })),
  {
    tool: "docker compose config",
    probe: ["docker", "compose", "version"],
    target: "compose",
    command: (files) => ["docker", "compose", "--file", ...ending("compose.yaml")(files), "config", "--quiet"],
  },
  {
    tool: "promtool test rules",
    probe: ["promtool", "--version"],
    target: "kubernetes",
    command: (files) => ["promtool", "test", "rules", ...ending("alerts.test.yaml")(files)],
  },
  {
    tool: "kubeconform",
    probe: ["kubeconform", "-v"],
    target: "kubernetes",
    command: (files) => ["kubeconform", "-strict", "-ignore-missing-schemas", ...manifests(files)],
  },
];

/** What systemd-analyze says about the machine instead of the units: the program is not installed here. */
const aboutTheMachine = /\/etc\/tape\/run\.sh is not executable|Failed to (load|open) environment file/;

function run(check: Check, folder: string): boolean {
  const name = `${check.tool} (${check.target})`;
  const [program, ...args] = check.probe;
  if (spawnSync(program!, args).status !== 0) {
    console.log(`NOT RUN  ${name}: ${check.probe.join(" ")} does not work on this machine`);
    return true;
  }
  const plan = planDeployment(check.target, loadDeployConfig({ cwd: folder }));
  const out = join(folder, "deploy", check.target);
  const files = render(check.target, plan, { out, project: folder });
  writeFolder(out, check.target, files);
  const [tool, ...rest] = check.command(files.map(({ path }) => join(out, path)));
  const env = { ...process.env, DB_PASSWORD: "x", ADMIN_TOKEN: "x", HOOK_SECRET: "x", GIT_SHA: "x" };
  const { status, stdout, stderr } = spawnSync(tool!, rest, { encoding: "utf8", env });
  const lines = `${stdout}${stderr}`.split("\n").filter((line) => line !== "" && !aboutTheMachine.test(line));
  const passed = status === 0 || (check.tool.startsWith("systemd") && lines.length === 0);
  console.log(`${passed ? "ok      " : "FAILED  "} ${name}`);
  if (!passed) for (const line of lines) console.log(`         ${line}`);
  return passed;
}

const folder = mkdtempSync(join(tmpdir(), "tape-deploy-check-"));
try {
  writeFileSync(join(folder, "tape.yaml"), sample);
  const results = checks.map((check) => run(check, folder));
  process.exitCode = results.every(Boolean) ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
