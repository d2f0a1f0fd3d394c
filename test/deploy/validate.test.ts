import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DCLinter } from "dclint";
import { type Dockerfile, DockerfileParser } from "dockerfile-ast";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse, stringify } from "yaml";
import { targets } from "../../src/deploy/plan.ts";
import { problemWith } from "./models.ts";
import { type Document, rendered, sample } from "./sample.ts";

function folderWith(path: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "tape-deploy-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, path);
  writeFileSync(file, text);
  return file;
}

/** Rules of the linter that are about taste: the order of keys is the one that a reader needs. */
const taste = [
  "service-keys-order",
  "services-alphabetical-order",
  "service-dependencies-alphabetical-order",
  "top-level-properties-order",
  // An address with dots is text without quotes, too.
  "require-quotes-in-ports",
  // The image is built from the project, and all services share it under its name.
  "no-build-and-image",
];

interface LintResult {
  readonly messages: readonly { readonly rule: string; readonly message: string }[];
}

/** What the linter, which begins with the published schema, finds in a Compose file. */
function composeProblems(text: string): string[] {
  const rules = Object.fromEntries(taste.map((rule) => [rule, 0 as const]));
  const linter = new DCLinter({ rules, quiet: true, debug: false, exclude: [] });
  const results = linter.lintFiles([folderWith("compose.yaml", text)], false) as LintResult[];
  return results.flatMap(({ messages }) => messages.map(({ rule, message }) => `${rule}: ${message}`));
}

describe("objects of Kubernetes and Cloud Run", () => {
  it("are valid by the published schemas of their kinds", () => {
    const kubernetes = rendered("kubernetes").documents();
    const knative = rendered("gcp")
      .documents()
      .filter(({ kind }) => kind === "Service");
    expect(kubernetes).toHaveLength(27);
    expect(knative).toHaveLength(8);
    for (const document of [...kubernetes, ...knative]) {
      expect([document.kind, document.metadata.name, problemWith(document)]).toEqual([
        document.kind,
        document.metadata.name,
        undefined,
      ]);
    }
  });

  type Mutation = [string, "kubernetes" | "gcp", string, (spec: Record<string, never>) => void];
  const drop = (path: string) => (spec: Record<string, never>) => set(spec, path, undefined);
  const put = (path: string, value: unknown) => (spec: Record<string, never>) => set(spec, path, value);
  function set(spec: object, path: string, value: unknown): void {
    const keys = path.split(".");
    const last = keys.pop()!;
    const parent = keys.reduce<Record<string, unknown>>(
      (tree, key) => tree[key] as Record<string, unknown>,
      spec as never,
    );
    if (value === undefined) delete parent[last];
    else parent[last] = value;
  }

  it.each<Mutation>([
    ["Deployment without a selector", "kubernetes", "Deployment", drop("selector")],
    [
      "Deployment with text for a number",
      "kubernetes",
      "Deployment",
      put("template.spec.terminationGracePeriodSeconds", "35"),
    ],
    ["Deployment with a container without a name", "kubernetes", "Deployment", drop("template.spec.containers.0.name")],
    ["Job without a template", "kubernetes", "Job", drop("template")],
    ["Service with a port without a number", "kubernetes", "Service", drop("ports.0.port")],
    ["autoscaler without a maximum", "kubernetes", "HorizontalPodAutoscaler", drop("maxReplicas")],
    ["disruption budget with a selector that is a list", "kubernetes", "PodDisruptionBudget", put("selector", [])],
    [
      "network policy with a block without a network",
      "kubernetes",
      "NetworkPolicy",
      drop("egress.1.to.0.ipBlock.cidr"),
    ],
    ["scaled object without triggers", "kubernetes", "ScaledObject", drop("triggers")],
    ["pod monitor without a selector", "kubernetes", "PodMonitor", drop("selector")],
    ["Cloud Run service with a time-out that is text", "gcp", "Service", put("template.spec.timeoutSeconds", "300")],
  ])("a mutated one is refused: %s", (_, target, kind, mutate) => {
    const document = rendered(target)
      .documents()
      .find((one) => one.kind === kind) as Document;
    expect(problemWith(document)).toBeUndefined();
    mutate(document.spec as Record<string, never>);
    expect(problemWith(document)).toBeTypeOf("string");
  });
});

describe("compose.yaml", () => {
  it("is valid by the published schema and the linter's rules", () => {
    expect(composeProblems(rendered("compose").text("compose.yaml"))).toEqual([]);
  });

  it.each([
    ["an unknown key", (service: Record<string, unknown>) => Object.assign(service, { stop_grace_periodd: "5s" })],
    ["a wrong type", (service: Record<string, unknown>) => Object.assign(service, { environment: 5 })],
    ["a port on every address", (service: Record<string, unknown>) => Object.assign(service, { ports: ["7878:7878"] })],
  ])("is refused with %s", (_, mutate) => {
    const file = parse(rendered("compose").text("compose.yaml")) as {
      services: Record<string, Record<string, unknown>>;
    };
    mutate(file.services["tape-server"]!);
    expect(composeProblems(stringify(file))).not.toEqual([]);
  });
});

describe("shell scripts", () => {
  const syntax = (text: string): number | null => spawnSync("bash", ["-n", folderWith("x.sh", text)]).status;

  it.each(targets)("%s: bash accepts each of them", (target) => {
    const scripts = rendered(target).files.filter(({ executable }) => executable);
    expect(scripts.map(({ path }) => path)).toContain("deploy.sh");
    for (const { path, text } of scripts) expect([path, syntax(text)]).toEqual([path, 0]);
  });

  it("bash rejects a broken one", () => {
    expect(syntax(rendered("gcp").text("deploy.sh").replace("fill() {", "fill() {{ (("))).not.toBe(0);
  });
});

describe("Dockerfile", () => {
  const problems = (file: Dockerfile): string[] => {
    const instructions = file.getInstructions().map((one) => one.getKeyword());
    const cmd = file.getCMDs().at(-1);
    const stages = file.getFROMs().map((from) => from.getBuildStage());
    const copied = file.getCOPYs().flatMap((copy) => copy.getFromFlag()?.getValue() ?? []);
    return [
      ...(stages.length === 2 ? [] : ["it needs two stages"]),
      ...(copied.every((stage) => stages.includes(stage)) ? [] : ["it copies from an unknown stage"]),
      ...(cmd?.getArgumentsContent()?.startsWith('["node"') ? [] : ["its command must be node itself, as a list"]),
      ...(instructions.includes("USER") ? [] : ["it runs as root"]),
      ...(file.getFROMs().every((from) => from.getImageTag() !== null) ? [] : ["an image has no tag"]),
    ];
  };
  const text = rendered.bind(undefined, "kubernetes");

  it("has two stages, a user and a command that receives SIGTERM", () => {
    expect(problems(DockerfileParser.parse(text().text("Dockerfile")))).toEqual([]);
  });

  it.each([
    ["USER node\n", "", "it runs as root"],
    ['CMD ["node"', 'CMD ["npm", "start"', "its command must be node itself, as a list"],
    ["--from=build", "--from=bild", "it copies from an unknown stage"],
  ])("the check finds %j replaced by %j", (from, to, expected) => {
    expect(problems(DockerfileParser.parse(text().text("Dockerfile").replace(from, to)))).toEqual([expected]);
  });
});

describe("systemd units", () => {
  /** Sections and settings of a unit file; a line that is neither is an error. */
  function settingsOf(unit: string): string[] {
    let section = "";
    return unit.split("\n").flatMap((line) => {
      if (line === "" || line.startsWith("#")) return [];
      const [, name] = /^\[(\w+)\]$/.exec(line) ?? [];
      if (name !== undefined) {
        section = name;
        return [];
      }
      if (!/^\w+=/.test(line)) throw new Error(`not a setting: ${line}`);
      return [`${section}.${line}`];
    });
  }

  it("stop by SIGTERM with time to drain, and get secrets as credentials", () => {
    const settings = settingsOf(rendered("systemd").text("tape-reactor@.service"));
    for (const expected of [
      "Service.KillSignal=SIGTERM",
      "Service.TimeoutStopSec=35",
      "Service.Restart=always",
      "Service.NoNewPrivileges=true",
      "Service.LoadCredential=tape-db-password:/etc/tape/credentials/tape-db-password",
      "Service.EnvironmentFile=/etc/tape/reactor-%i.env",
      "Service.ExecStart=/etc/tape/run.sh node node_modules/durable-tape/bin/tape-reactors.js --only %i",
    ]) {
      expect(settings).toContain(expected);
    }
  });

  it("keep an SQLite store in the folder that is writable", () => {
    const all = rendered("systemd", sample.replace(/store: .*\n/, 'store: { url: "sqlite:./.tape/tape.db" }\n'));
    expect(all.text("tape.env")).toContain("TAPE_STORE_URL=sqlite:/var/lib/tape/tape.db");
    expect(settingsOf(all.text("tape-server.service"))).toContain("Service.StateDirectory=tape");
  });
});
