// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is the syntax of the file, not of a template
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Target, targets } from "../../src/deploy/plan.ts";
import type { TapeError } from "../../src/model/errors.ts";
import { type Document, type RenderedFolder, rendered, sample, sampleWith } from "./sample.ts";

const secretValues = {
  DB_PASSWORD: "hunter2",
  ADMIN_TOKEN: "admin.0123456789",
  HOOK_SECRET: "whsec_1",
  GIT_SHA: "abc",
};

function setEnvironment(values: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(values)) process.env[name] = value;
  onTestFinished(() => {
    for (const name of Object.keys(values)) delete process.env[name];
  });
}

/** The same with sinks. */
const withSinks = (lines: string): string =>
  sample.replace(/ {2}events:\n {4}sinks:\n( {6}.*\n)+/, `  events: { sinks: { ${lines} } }\n`);

const find = (all: RenderedFolder, kind: string, name: string): Document =>
  all.documents().find((document) => document.kind === kind && document.metadata.name === name)!;

/** A value deep inside a document. */
const at = (document: unknown, path: string): unknown =>
  path.split(".").reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document);

describe("docs/deployment.md", () => {
  const page = readFileSync(resolve(import.meta.dirname, "../../docs/deployment.md"), "utf8");
  const [, example = ""] = /^```yaml deploy\n(.*?)^```/ms.exec(page) ?? [];

  it.each(targets)("%s: its example is rendered without a warning", (target) => {
    const { files, plan } = rendered(target, example);
    expect(plan.warnings).toEqual([]);
    expect(files.length).toBeGreaterThan(4);
    expect(page).toContain(`npx durable-tape deploy ${target}\n`);
  });
});

describe("rendering", () => {
  it.each(targets)("%s: two renders are equal byte for byte, whatever the environment", (target) => {
    const first = rendered(target).files;
    setEnvironment({ ...secretValues, TAPE_DRAIN_S: "3", TAPE_STORE_URL: "postgres://elsewhere/x", DB_HOST: "other" });
    expect(rendered(target).files).toEqual(first);
  });

  it.each(targets)("%s: secrets appear by name only", (target) => {
    setEnvironment(secretValues);
    const text = rendered(target)
      .files.map((file) => file.text)
      .join("\n");
    for (const value of Object.values(secretValues).slice(0, 3)) expect(text).not.toContain(value);
    expect(text).toContain("HOOK_SECRET");
  });

  it("has one service for each reactor and each enabled sink, and the server", () => {
    const names = ["server", "recovery", "reconciler", "outbox", "timers", "compensation", "reap-aged"];
    const reactors = names.map((name) => (name === "server" ? "tape-server" : `tape-reactor-${name}`));
    const objects = [...reactors, "tape-sink-billing-eu"];
    for (const target of ["kubernetes", "gcp"] as const) {
      const kind = target === "gcp" ? "Service" : "Deployment";
      const found = rendered(target)
        .documents()
        .filter((document) => document.kind === kind);
      expect(found.map(({ metadata }) => metadata.name).toSorted()).toEqual(objects.toSorted());
    }
    expect(Object.keys(at(rendered("compose").documents()[0], "services") as object)).toEqual([
      ...["tape-db", "tape-migrate"],
      ...objects,
    ]);
    expect(rendered("systemd").text("tape.target")).toContain(
      "Wants=tape-server.service tape-reactor@recovery.service tape-reactor@reconciler.service",
    );
  });

  it("runs a sink alone, in as many replicas as it sets, which no autoscaler changes", () => {
    const yaml = sampleWith('sinks: { billing_eu: { min: 2, egress: ["203.0.113.9/32:443"] } }');
    const command = ["node_modules/durable-tape/bin/tape-reactors.js", "--only", "sink-billing_eu"];
    const all = rendered("kubernetes", yaml);
    const kinds = all.documents("tape-sink-billing-eu.yaml").map(({ kind }) => kind);
    expect(kinds).toEqual(["Deployment", "PodDisruptionBudget", "NetworkPolicy"]);
    const deployment = find(all, "Deployment", "tape-sink-billing-eu");
    expect(at(deployment, "spec.template.spec.containers.0.args")).toEqual(command);
    expect(at(deployment, "spec.replicas")).toBe(2);
    const policy = find(all, "NetworkPolicy", "tape-sink-billing-eu");
    expect(at(policy, "spec.egress.2.to.0.ipBlock.cidr")).toBe("203.0.113.9/32");
    const service = find(rendered("gcp", yaml), "Service", "tape-sink-billing-eu");
    expect(at(service, "spec.template.spec.containers.0.args")).toEqual(command);
    const scales = at(service, "spec.template.metadata.annotations") as Record<string, string>;
    expect(scales["autoscaling.knative.dev/minScale"]).toBe("2");
    expect(scales["autoscaling.knative.dev/maxScale"]).toBe("2");
    expect(at(rendered("compose", yaml).documents()[0], "services.tape-sink-billing-eu.deploy.replicas")).toBe(2);
    const systemd = rendered("systemd", yaml);
    expect(systemd.text("tape-sink@.service")).toContain("tape-reactors.js --only sink-%i\n");
    expect(systemd.text("tape-sink@.service")).toContain("EnvironmentFile=/etc/tape/sink-%i.env\n");
    expect(systemd.text("tape.target")).toContain(" tape-sink@billing_eu.service\n");
    const ports = systemd.files.flatMap(({ path, text }) => (path.endsWith(".env") ? (/127\S+/.exec(text) ?? []) : []));
    expect(new Set(ports).size).toBe(7);
    expect(systemd.text("deploy.sh")).toMatch(/install .*sink-billing_eu\.env .*\/etc\/tape\//);
  });

  it("leaves out a disabled reactor, and the server on request", () => {
    const yaml = sampleWith("server: { enabled: false }").replace(
      "  reactors:\n    reap",
      "  reactors:\n    compensation: { enabled: false }\n    reap",
    );
    const paths = rendered("kubernetes", yaml).files.map(({ path }) => path);
    expect(paths).toContain("tape-reactor-outbox.yaml");
    expect(paths).not.toContain("tape-reactor-compensation.yaml");
    expect(paths).not.toContain("tape-server.yaml");
  });

  it("an announcer stands for the reactors with mode: push", () => {
    const yaml = sample.replace(
      "  reactors:\n    reap",
      '  push: { waker: { url: "https://push.example", secrets: ["${HOOK_SECRET}"] } }\n  reactors:\n    recovery: { mode: push }\n    reap',
    );
    const all = rendered("kubernetes", yaml);
    const paths = all.files.map(({ path }) => path);
    expect(paths).toContain("tape-announcer.yaml");
    expect(paths).not.toContain("tape-reactor-recovery.yaml");
    expect(at(find(all, "Deployment", "tape-announcer"), "spec.template.spec.containers.0.args")).toEqual([
      "node_modules/durable-tape/bin/tape-reactors.js",
      "--announce",
    ]);
    expect(rendered("systemd", yaml).text("tape-announcer.service")).toContain("tape-reactors.js --announce");
  });

  it("a store behind a server needs neither schema nor server", () => {
    const yaml = sample.replace(/store: .*\n/, 'store: { url: "https://tape.example" }\n');
    const all = rendered("kubernetes", yaml);
    expect(all.files.map(({ path }) => path)).not.toContain("tape-migrate.yaml");
    expect(all.files.map(({ path }) => path)).not.toContain("tape-server.yaml");
    expect(all.plan.connections).toBe(0);
  });
});

describe("kubernetes", () => {
  const pod = "spec.template.spec";

  it("gives a stopping process drain_s and ten seconds, and probes the metrics port", () => {
    const outbox = find(rendered("kubernetes"), "Deployment", "tape-reactor-outbox");
    expect(at(outbox, `${pod}.terminationGracePeriodSeconds`)).toBe(35);
    const container = `${pod}.containers.0`;
    expect(at(outbox, `${container}.livenessProbe.httpGet`)).toEqual({ path: "/livez", port: "http", scheme: "HTTP" });
    expect(at(outbox, `${container}.readinessProbe.httpGet.path`)).toBe("/readyz");
    expect(at(outbox, `${container}.env`)).toContainEqual({ name: "TAPE_METRICS_LISTEN", value: "0.0.0.0:9464" });
    expect(at(outbox, `${container}.env`)).toContainEqual({
      name: "DB_PASSWORD",
      valueFrom: { secretKeyRef: { name: "tape-db-password", key: "value" } },
    });
    expect(at(outbox, `${container}.securityContext.readOnlyRootFilesystem`)).toBe(true);
  });

  it("scales by CPU or by due work, and leaves the replicas to the autoscaler", () => {
    const all = rendered("kubernetes");
    expect(at(find(all, "Deployment", "tape-reactor-outbox"), "spec.replicas")).toBeUndefined();
    expect(at(find(all, "Deployment", "tape-reactor-timers"), "spec.replicas")).toBe(1);
    expect(at(find(all, "ScaledObject", "tape-reactor-outbox"), "spec.triggers.0.metadata.query")).toBe(
      'max(tape_reactor_due{reactor="outbox"})',
    );
    expect(at(find(all, "HorizontalPodAutoscaler", "tape-reactor-recovery"), "spec.maxReplicas")).toBe(3);
    const budgets = all.documents().filter(({ kind }) => kind === "PodDisruptionBudget");
    expect(budgets.map(({ metadata }) => metadata.name)).toEqual(["tape-reactor-outbox"]);
  });

  it("lets a reactor reach DNS, the database and its egress, never the metadata server", () => {
    const all = rendered("kubernetes", sample.replace("db.internal", "10.1.2.3"));
    const egress = (name: string): unknown[] => at(find(all, "NetworkPolicy", name), "spec.egress") as unknown[];
    const database = { to: [{ ipBlock: { cidr: "10.1.2.3/32" } }], ports: [{ protocol: "TCP", port: 5432 }] };
    expect(egress("tape-reactor-timers").slice(1)).toEqual([database]);
    expect(egress("tape-reactor-outbox").slice(1)).toEqual([
      database,
      { to: [{ ipBlock: { cidr: "203.0.113.0/24" } }], ports: [{ protocol: "TCP", port: 443 }] },
      {
        to: [{ ipBlock: { cidr: "169.254.0.0/16", except: ["169.254.169.254/32"] } }],
        ports: [{ protocol: "TCP", port: 80 }],
      },
    ]);
    expect(egress("tape-reactor-recovery").at(-1)).toEqual({
      to: [{ ipBlock: { cidr: "0.0.0.0/0", except: ["169.254.169.254/32"] } }, { ipBlock: { cidr: "::/0" } }],
    });
  });

  it("lets a reactor reach every host of a database with several", () => {
    const all = rendered("kubernetes", sample.replace("${DB_HOST:-localhost}", "10.1.2.3,10.1.2.4:6432"));
    const egress = at(find(all, "NetworkPolicy", "tape-reactor-timers"), "spec.egress") as unknown[];
    expect(egress.slice(1)).toEqual([
      { to: [{ ipBlock: { cidr: "10.1.2.3/32" } }], ports: [{ protocol: "TCP", port: 5432 }] },
      { to: [{ ipBlock: { cidr: "10.1.2.4/32" } }], ports: [{ protocol: "TCP", port: 6432 }] },
    ]);
  });

  it("serves HTTPS probes with a certificate, and a bare port if clients need one, too", () => {
    const tls = (settings: string): unknown => {
      const yaml = sample.replace("server: {", `server: { tls: { cert: a.pem, key: b.pem${settings} },`);
      const server = find(rendered("kubernetes", yaml), "Deployment", "tape-server");
      expect(at(server, `${pod}.containers.0.env`)).not.toContainEqual({
        name: "TAPE_SERVER_PLAIN",
        value: "accepted",
      });
      return at(server, `${pod}.containers.0.livenessProbe`);
    };
    expect(tls("")).toMatchObject({ httpGet: { path: "/livez", scheme: "HTTPS" } });
    expect(tls(", client_ca: c.pem")).toMatchObject({ tcpSocket: { port: "http" } });
  });
});

describe("gcp", () => {
  const template = "spec.template";

  it("keeps one instance of each reactor, with a CPU that is never throttled", () => {
    for (const document of rendered("gcp")
      .documents()
      .filter(({ kind }) => kind === "Service")) {
      const annotations = at(document, `${template}.metadata.annotations`) as Record<string, string>;
      expect(Number(annotations["autoscaling.knative.dev/minScale"])).toBeGreaterThanOrEqual(1);
      expect(annotations["run.googleapis.com/cpu-throttling"]).toBe("false");
      expect(annotations["run.googleapis.com/network-interfaces"]).toBe('[{"network":"main"}]');
      expect(at(document, `${template}.spec.containers.0.env`)).toContainEqual({ name: "TAPE_DRAIN_S", value: "8" });
    }
  });

  it("renders worker pools on request, with a fixed number of instances", () => {
    const all = rendered("gcp", sample.replace("region:", "workers: pool, region:"));
    const outbox = find(all, "WorkerPool", "tape-reactor-outbox");
    expect(outbox.apiVersion).toBe("run.googleapis.com/v1");
    expect(at(outbox, "metadata.annotations")).toMatchObject({ "run.googleapis.com/manualInstanceCount": "2" });
    expect(find(all, "Service", "tape-server")).toBeDefined();
    expect(all.text("deploy.sh")).toContain("gcloud run worker-pools replace");
  });

  it("shortens the id of a service account that would be too long", () => {
    const long = "reap-obligations-of-last-month";
    const all = rendered("gcp", sample.replaceAll("reap-aged", long));
    const account = String(at(find(all, "Service", `tape-reactor-${long}`), `${template}.spec.serviceAccountName`));
    expect(account).toMatch(/^tape-reactor-reap-obl-[0-9a-f]{8}@my-project\.iam\.gserviceaccount\.com$/);
  });
});

describe("a configuration is rejected", () => {
  const codeOf = (yaml: string, target: Target = "kubernetes"): [string, string] => {
    try {
      rendered(target, yaml);
    } catch (error) {
      return [(error as TapeError).code, (error as TapeError).message];
    }
    return ["", ""];
  };

  it.each([
    ["a password in the URL", sample.replace("${DB_PASSWORD}@", "hunter2@")],
    ["a part of the password", sample.replace("${DB_PASSWORD}@", "pre${DB_PASSWORD}@")],
    ["a default of the password", sample.replace("${DB_PASSWORD}@", "${OTHER:-hunter2}@")],
    [
      "a plain variable as the password",
      sample.replace("DB_PASSWORD: tape-db-password, ", "").replace("env: {", "env: { DB_PASSWORD: hunter2,"),
    ],
    ["a password among the parameters", sample.replace("?connections=4", "?password=hunter2")],
    [
      "a password in listen_url",
      sample.replace("?connections=4", "?listen_url=postgres%3A%2F%2Ftape%3Ahunter2%40db%2Fx"),
    ],
    [
      "a waker's secret",
      sample.replace(
        "  reactors:\n    reap",
        "  push: { waker: { secrets: [whsec_0123456789] } }\n  reactors:\n    reap",
      ),
    ],
    ["a default of a secret", sample.replace("${DB_PASSWORD}@", "${DB_PASSWORD:-hunter2}@")],
    ["a default of a secret token", sample.replace("${ADMIN_TOKEN}", "${ADMIN_TOKEN:-admin.0123456789}")],
    [
      "a default in a list",
      withSinks('hook: { kind: webhook, url: "https://x", secrets: ["${HOOK_SECRET:-hunter2}"] }'),
    ],
    ["a sink's secret", withSinks("hook: { kind: webhook, url: 'https://x', secrets: [whsec_0123456789] }")],
    ["a sink's token", withSinks("bus: { kind: nats, servers: ['nats://bus'], token: hunter2 }")],
    ["a sink's password", withSinks("bus: { kind: kafka, servers: ['bus:9092'], user: tape, password: hunter2 }")],
    ["a password in a sink's address", withSinks("cache: { kind: redis, url: 'redis://:hunter2@cache' }")],
    ["a password in an address of a list", withSinks("bus: { kind: nats, servers: ['nats://tape:hunter2@bus'] }")],
    ["a token", sample.replace("${ADMIN_TOKEN}", "admin.0123456789012345678901234567890123")],
  ])("%s: TAPE_DEPLOY_SECRET, without the value", (_, yaml) => {
    const [code, message] = codeOf(yaml);
    expect(code).toBe("TAPE_DEPLOY_SECRET");
    expect(message).not.toMatch(/hunter2|0123456789/);
  });

  it("an empty default of a secret, and a default of another variable, are none", () => {
    const yaml = sample.replace("${DB_PASSWORD}@", "${DB_PASSWORD:-}@").replace("${GIT_SHA}", "${GIT_SHA:-latest}");
    expect(rendered("kubernetes", yaml).plan.warnings).toHaveLength(1); // of connections, as without them
  });

  it.each<[string, string, string, Target?]>([
    ["a variable without a value", sample.replace("DB_HOST:-localhost", "DB_NAME"), "variable DB_NAME has no value"],
    ["a variable that is plain and secret", sample.replace("GREETING", "HOOK_SECRET"), "keep one"],
    ["an unknown reactor", sample.replace("timers: { max", "timer: { max"), "did you mean timers?"],
    ["an unknown sink", sampleWith("sinks: { biling_eu: { min: 1 } }"), "did you mean billing_eu?"],
    ["a sink that is disabled", sampleWith("sinks: { audit: { min: 1 } }"), "no such sink is enabled"],
    ["a sink without a replica", sampleWith("sinks: { billing_eu: { min: 0 } }"), "at least 1 replica"],
    ["two sinks of one name", withSinks("a_b: { kind: log }, a-b: { kind: log }"), "two sinks would be named"],
    ["a sink's name that is too long", sample.replace("billing_eu", "b".repeat(60)), "shorten the sink's name"],
    ["no replica", sample.replace("timers: { max: 1", "timers: { min: 0"), "at least 1 replica"],
    ["a maximum below the minimum", sample.replace("min: 2, max: 10", "min: 4"), "3 is less than min (4)"],
    ["a network that is none", sample.replace("203.0.113.0/24", "203.0.113.0/64"), "is not a network"],
    ["a port that is none", sample.replace("203.0.113.0/24:443", "203.0.113.0/24:70000"), "has no valid port"],
    ["SQLite on several hosts", sample.replace(/store: .*\n/, 'store: { url: "sqlite:./x.db" }\n'), "need PostgreSQL"],
    ["no image", sample.replace(/ {4}image: .*\n/, ""), "needs the name of an image"],
    ["KEDA without Prometheus", sample.replace(/, prometheus: [^}]*/, " "), "scale: lag needs"],
    ["a command in the image", sample.replace("${GIT_SHA}", "$(id)"), "must be the name of an image"],
    ["a name that is too long", sample.replaceAll("reap-aged", "a".repeat(60)), "shorten the reactor's name"],
    ["no project", sample.replace("project: my-project, ", ""), "needs project and region", "gcp"],
    ["half a CPU on Cloud Run", sampleWith("defaults: { cpu: 500m }"), "at least 1 CPU", "gcp"],
    ["little memory on Cloud Run", sampleWith("defaults: { memory: 256Mi }"), "at least 512Mi", "gcp"],
  ])("%s", (_, yaml, expected, target = "kubernetes") => {
    const [code, message] = codeOf(yaml, target);
    expect(code).toBe("TAPE_BAD_CONFIG");
    expect(message).toContain(expected);
  });

  it("warns of too many connections and of a plain variable that looks like a secret", () => {
    const { plan } = rendered("kubernetes", sample.replace("GREETING", "API_TOKEN"));
    expect(plan.connections).toBe((3 + 3 + 3 + 10 + 1 + 3 + 3 + 1) * 5);
    expect(plan.warnings.join("\n")).toContain("open 135 connections, and the database allows 100");
    expect(plan.warnings.join("\n")).toContain("tape.deploy.env.API_TOKEN looks like a secret");
    expect(rendered("systemd").plan.warnings).toEqual([]);
  });
});
