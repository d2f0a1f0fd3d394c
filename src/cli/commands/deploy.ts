import { resolve } from "node:path";
import { defined } from "../../base/defined.ts";
import { reasonOf } from "../../base/reason.ts";
import { suggest } from "../../base/suggest.ts";
import { loadDeployConfig } from "../../config/load-deploy.ts";
import { compareFolder, editedError, writeFolder } from "../../deploy/folder.ts";
import { planDeployment, type Target, targets } from "../../deploy/plan.ts";
import { render } from "../../deploy/render.ts";
import { type Command, type Invocation, UsageError } from "../command.ts";
import { plural } from "../output.ts";
import { complain } from "../screen.ts";

/** Renders files; it calls no cloud and needs no store. */
export const deploy: Command = {
  name: "deploy",
  summary: "renders the files of a deployment from tape.yaml: kubernetes, gcp, compose or systemd",
  arguments: [{ name: "target", help: targets.join(", ") }],
  options: {
    out: { value: "DIR", help: "folder to write to (default: deploy/TARGET)" },
    "dry-run": { help: "print the changes as a unified diff, and write nothing" },
    check: { help: "write nothing; exit 3 if the folder is not what tape.yaml gives" },
    force: { help: "overwrite files that were edited since they were rendered" },
    config: { value: "FILE", help: "configuration file (default: tape.yaml)" },
  },
  run: async (invocation) => run(invocation),
};

const isTarget = (text: string): text is Target => (targets as readonly string[]).includes(text);

function run(invocation: Invocation): number {
  const { screen } = invocation;
  const { target = "" } = invocation.arguments;
  if (!isTarget(target)) {
    const near = suggest(target, targets);
    throw new UsageError(
      `deploy: unknown target ${target}, expected one of ${targets.join(", ")}${near === undefined ? "" : `; did you mean ${near}?`}`,
    );
  }
  const [dryRun, check, force] = [invocation.given("dry-run"), invocation.given("check"), invocation.given("force")];
  if (Number(dryRun) + Number(check) + Number(force) > 1) {
    throw new UsageError("deploy: use only one of --dry-run, --check and --force");
  }
  const loaded = loadDeployConfig({ cwd: process.cwd(), ...defined({ file: invocation.text("config") }) });
  const plan = planDeployment(target, loaded);
  const name = invocation.text("out") ?? `deploy/${target}`;
  const out = resolve(name);
  const files = render(target, plan, { out, project: loaded.folder });
  for (const warning of plan.warnings) complain(process.stderr, `warning: ${warning}`);
  const { edited, changed, diff } = compareFolder(out, target, files);
  if (dryRun && diff !== "") screen.block(diff);
  if (edited.length > 0 && !force) {
    const error = editedError(name, edited);
    complain(process.stderr, reasonOf(error), error.next);
    return 3;
  }
  if (changed.length === 0) {
    screen.line(`${name} is up to date: ${plural(files.length, "file")}`);
    return 0;
  }
  if (check) {
    complain(
      process.stderr,
      `${name} is not what tape.yaml gives: ${changed.join(", ")}`,
      `Run durable-tape deploy ${target}.`,
    );
    return 3;
  }
  if (dryRun) return 0;
  writeFolder(out, target, files);
  screen.line(`${name}: ${plural(files.length, "file")}, ${changed.length} changed; read ${name}/README.md`);
  return 0;
}
