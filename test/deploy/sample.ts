// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is the syntax of the file, not of a template
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { loadDeployConfig } from "../../src/config/load-deploy.ts";
import { type Plan, planDeployment, type Target } from "../../src/deploy/plan.ts";
import { render } from "../../src/deploy/render.ts";
import type { RenderedFile } from "../../src/deploy/text.ts";
import { project } from "../cli/sidecar.ts";

/** A configuration that uses everything: secrets, plain variables, a custom reactor, KEDA, egress, a monitor. */
export const sample = `project: { name: shop }
agent: { runner_factory: "./app/agent.ts#buildRunner" }
tape:
  drain_s: 24.5
  store: { url: "postgres://tape:\${DB_PASSWORD}@\${DB_HOST:-localhost}/orders?connections=4" }
  server: { bootstrap_token: "\${ADMIN_TOKEN}" }
  reactors:
    reap-aged: { handler: "./app/reap.ts#reap" }
  deploy:
    image: europe-docker.pkg.dev/p/tape/app:\${GIT_SHA}
    secrets: { DB_PASSWORD: tape-db-password, ADMIN_TOKEN: tape-admin, HOOK_SECRET: tape-hook }
    env: { DB_HOST: db.internal, GREETING: "a $5 \\"note\\"" }
    reactors:
      outbox: { min: 2, max: 10, scale: lag, egress: ["203.0.113.0/24:443", "169.254.0.0/16:80"] }
      timers: { max: 1 }
    kubernetes: { namespace: shop, monitor: true, prometheus: "http://prometheus.monitoring:9090" }
    gcp: { project: my-project, region: europe-west1, sql: "my-project:europe-west1:orders", network: main }
`;

/** The same with a setting of `tape.deploy` added or replaced. */
export const sampleWith = (lines: string): string => sample.replace("  deploy:\n", `  deploy:\n    ${lines}\n`);

export interface Rendered {
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

/** Renders a configuration in a temporary project. */
export function rendered(target: Target, yaml: string = sample): Rendered {
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
      .filter((file) => (path === undefined ? file.path.endsWith(".yaml") : file.path === path))
      .flatMap((file) => parseAllDocuments(file.text).map((document) => document.toJS() as Document));
  return { plan, files, text, documents };
}
