// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is the syntax of the file, not of a template
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseAllDocuments } from "yaml";
import { loadDeployConfig } from "../../src/config/load-deploy.ts";
import { type Plan, planDeployment, type Target } from "../../src/deploy/plan.ts";
import { render } from "../../src/deploy/render.ts";
import type { RenderedFile } from "../../src/deploy/text.ts";
import { project } from "../cli/sidecar.ts";
import { sample } from "./sample-yaml.ts";

export { sample };

/** The same with a setting of `tape.deploy` added or replaced. */
export const sampleWith = (lines: string): string => sample.replace("  deploy:\n", `  deploy:\n    ${lines}\n`);

export interface RenderedFolder {
  readonly plan: Plan;
  readonly files: readonly RenderedFile[];
  text(path: string): string;
  /** The YAML documents of one file, or of all files that have any. */
  documents(path?: string): Document[];
}

export interface Document {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: Record<string, unknown>;
}

/** The rules for Prometheus are YAML, too, but no manifests. */
const isManifest = (path: string): boolean => path.endsWith(".yaml") && !/^alerts(\.test)?\.yaml$/.test(path);

/** A file of the repository. */
export const textOfFile = (path: string): string => readFileSync(resolve(import.meta.dirname, "../..", path), "utf8");

/** Renders a configuration in a temporary project. */
export function rendered(target: Target, yaml: string = sample): RenderedFolder {
  const folder = project({ "tape.yaml": yaml });
  const plan = planDeployment(target, loadDeployConfig({ cwd: folder }));
  const files = render(target, plan, { out: join(folder, "deploy", target), project: folder });
  const text = (path: string): string => {
    const file = files.find((one) => one.path === path);
    if (file === undefined) throw new Error(`${path} was not rendered; there are ${files.map((one) => one.path)}`);
    return file.text;
  };
  const documents = (path?: string): Document[] =>
    files
      .filter((file) => (path === undefined ? isManifest(file.path) : file.path === path))
      .flatMap((file) => parseAllDocuments(file.text).map((document) => document.toJS() as Document));
  return { plan, files, text, documents };
}
