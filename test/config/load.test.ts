// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is the syntax of the file, not of a template
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { describeConfig } from "../../src/config/describe.ts";
import { type FlagValue, type LoadedConfig, loadConfig } from "../../src/config/load.ts";
import { referenceForms } from "../../src/config/reference.ts";
import { TapeError } from "../../src/model/errors.ts";

interface Sources {
  readonly yaml?: string;
  readonly env?: Record<string, string>;
  readonly flags?: FlagValue[];
  readonly file?: string;
}

function load({ yaml, env = {}, flags = [], file }: Sources): LoadedConfig {
  const cwd = mkdtempSync(join(tmpdir(), "tape-config-"));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  if (yaml !== undefined) writeFileSync(join(cwd, "tape.yaml"), yaml);
  return loadConfig({ cwd, env, flags, ...(file === undefined ? {} : { file }) });
}

/** The problems, one `where: message` each. */
function problemsOf(sources: Sources): string[] {
  try {
    load(sources);
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== "TAPE_BAD_CONFIG") throw error;
    const problems = error.details.problems as { where: string; message: string }[];
    const lines = problems.map(({ where, message }) => `${where}: ${message}`);
    expect(error.message).toBe(`TAPE_BAD_CONFIG: ${lines.join("\n")}`);
    return lines;
  }
  return [];
}

const described = (config: LoadedConfig, path: string) => {
  const found = describeConfig(config).find((setting) => setting.path === path);
  return found && [found.value, found.origin];
};

describe("tape.yaml", () => {
  it("accepts the documented example", () => {
    const { settings, file } = load({
      yaml: `
project: { name: treasury }
agent:
  runner_factory: ./app/agent.ts#buildRunner
tape:
  store: { url: "sqlite:./.tape/tape.db" }        # postgres://… | alloydb://…
  server: { listen: 127.0.0.1:7878 }
  reactors:
    recovery:     { enabled: true, lease_ttl_s: 30, heartbeat_s: 10, batch: 50, concurrency: 50 }
    reconciler:   { enabled: true }
    outbox:       { enabled: true }
    timers:       { enabled: true }
    compensation: { enabled: true }
    reap-aged-obligations: { enabled: true, handler: ./app/reap.ts#reapOnce, interval_ms: 3600000 }   # custom
`,
    });
    expect(file).toBe("tape.yaml");
    expect(settings.project.name).toBe("treasury");
    expect(settings.tape.reactors["reap-aged-obligations"]).toMatchObject({
      handler: "./app/reap.ts#reapOnce",
      interval_ms: 3_600_000,
      batch: 50,
    });
    expect(settings.tape.reactors.recovery).toMatchObject({ heartbeat_s: 10, interval_ms: 5_000 });
  });

  it("uses defaults without a file", () => {
    const config = load({});
    expect(config.file).toBeUndefined();
    expect(config.settings.tape.store.url).toBe("sqlite:./.tape/tape.db");
    expect(config.settings.tape.reactors.outbox).toEqual({
      enabled: true,
      mode: "loop",
      batch: 50,
      concurrency: 50,
      lease_ttl_s: 30,
      interval_ms: 5_000,
      takeover: { base_ms: 1_000, cap_ms: 10_000 },
      lease_attempts: "unlimited",
      max_attempts: "unlimited",
      backoff: { base_ms: 1_000, cap_ms: 60_000, factor: 2 },
    });
    expect(new Set(describeConfig(config).map(({ origin }) => origin))).toEqual(new Set(["default"]));
  });

  it("accepts the dotted form of a function, and names with _", () => {
    const { tape, agent } = load({
      yaml: "agent: { runner_factory: app.agent:build_runner }\ntape: { reactors: { reap_aged: { handler: app.reap:reap_once } } }\n",
      env: { TAPE_REACTORS_REAP_AGED_BATCH: "7" },
    }).settings;
    expect(agent.runner_factory).toBe("app.agent:build_runner");
    expect(tape.reactors.reap_aged).toMatchObject({ handler: "app.reap:reap_once", batch: 7, interval_ms: 60_000 });
  });

  it.each(["", "# nothing\n", "tape:\n", "tape:\n  reactors:\n    outbox:\n"])("accepts empty sections: %j", (yaml) => {
    expect(load({ yaml }).settings).toEqual(load({}).settings);
  });

  it("rejects a named file that does not exist", () => {
    expect(problemsOf({ file: "other.yaml" })).toEqual(["other.yaml: file not found"]);
    expect(problemsOf({ env: { TAPE_CONFIG: "third.yaml" } })).toEqual(["third.yaml: file not found"]);
  });
});

describe("errors with line and column", () => {
  it.each<[string, string, string[]]>([
    [
      "unknown key",
      "tape:\n  reactors:\n    outbox: { batc: 5 }\n",
      ["tape.yaml:3:15: unknown key batc in tape.reactors.outbox; did you mean batch?"],
    ],
    [
      "unknown key at the top",
      "tap:\n  store:\n    url: x\n",
      ["tape.yaml:1:1: unknown key tap in the file; did you mean tape?"],
    ],
    [
      "unknown section without content",
      "tape:\n  storage:\n",
      ["tape.yaml:2:3: unknown key storage in tape; did you mean store?"],
    ],
    [
      "nothing near",
      "zebra: 1\n",
      ["tape.yaml:1:1: unknown key zebra in the file; known keys are project, agent, tape"],
    ],
    [
      "misspelt reactor",
      "tape:\n  reactors:\n    recvery: { enabled: false }\n",
      ["tape.yaml:3:5: reactor recvery has no handler; did you mean recovery?"],
    ],
    [
      "wrong kinds",
      "tape:\n  drain_s: soon\n  reactors:\n    timers:\n      enabled: 5\n      batch: 0\n      max_attempts: many\n",
      [
        "tape.yaml:2:12: tape.drain_s must be a number",
        "tape.yaml:5:16: tape.reactors.timers.enabled must be true or false",
        "tape.yaml:6:14: tape.reactors.timers.batch must be a whole number, at least 1",
        "tape.yaml:7:21: tape.reactors.timers.max_attempts must be a whole number or unlimited",
      ],
    ],
    [
      "fraction",
      "tape:\n  reactors:\n    outbox:\n      batch: 1.5\n",
      ["tape.yaml:4:14: tape.reactors.outbox.batch must be a whole number"],
    ],
    [
      "choice",
      "tape:\n  log: { level: loud }\n",
      ["tape.yaml:2:17: tape.log.level must be one of debug, info, warn, error, silent"],
    ],
    ["no value", "tape:\n  tenant:\n", ["tape.yaml:2:3: tape.tenant must be text"]],
    ["section instead of a value", "tape:\n  tenant: { a: 1 }\n", ["tape.yaml:2:3: tape.tenant must be text"]],
    ["value instead of a section", "tape: 5\n", ["tape.yaml:1:7: tape must be a map of keys"]],
    ["not a map", "just text\n", ["tape.yaml: the configuration must be a map of keys"]],
    ["a list", "tape: [1]\n", ["tape.yaml:1:7: tape must not be a list"]],
    [
      "a list of maps",
      "tape: { deploy: { server: { egress: [{ a: 1 }] } } }\n",
      ["tape.yaml:1:37: tape.deploy.server.egress: must be a list of plain values"],
    ],
    [
      "an entry of a list",
      "tape: { deploy: { server: { egress: [everywhere] } } }\n",
      ["tape.yaml:1:37: tape.deploy.server.egress.0 must be NETWORK:PORT, such as 203.0.113.0/24:443"],
    ],
    [
      "text instead of a list",
      "tape: { deploy: { server: { egress: 5 } } }\n",
      ["tape.yaml:1:37: tape.deploy.server.egress must be a list"],
    ],
    [
      "handler without export",
      "agent:\n  runner_factory: ./app/agent.ts\n",
      [`tape.yaml:2:19: agent.runner_factory must be ${referenceForms}`],
    ],
    [
      "module without export",
      "agent:\n  runner_factory: app.agent\n",
      [`tape.yaml:2:19: agent.runner_factory must be ${referenceForms}`],
    ],
    [
      "limited lease attempts",
      "tape:\n  reactors:\n    outbox: { lease_attempts: 5 }\n",
      ["tape.yaml:3:31: tape.reactors.outbox.lease_attempts must be one of unlimited"],
    ],
    [
      "pauses of takeovers that shrink",
      "tape:\n  reactors:\n    outbox: { takeover: { base_ms: 9, cap_ms: 5 } }\n",
      ["tape.yaml:3:36: tape.reactors.outbox.takeover.base_ms: 9 ms is more than cap_ms (5 ms)"],
    ],
    [
      "two reactors with the same variables",
      "tape:\n  reactors:\n    reap-aged: { handler: a#b }\n    reap_aged: { handler: a#b }\n",
      [
        "tape.yaml:4:5: tape.reactors.reap_aged: the reactors reap-aged and reap_aged have the same variables, TAPE_REACTORS_REAP_AGED_…; rename one of them",
      ],
    ],
    ["key twice", "project: {}\nproject: {}\n", ["tape.yaml:2:1: Map keys must be unique"]],
    ["broken YAML", "tape: {\n", [expect.stringMatching(/^tape\.yaml:2:1: Flow map/) as unknown as string]],
    ["prototype", "__proto__: { a: 1 }\n", ["tape.yaml:1:1: a key must be plain text"]],
    [
      "too deep",
      `${"{a: ".repeat(30)}1${"}".repeat(30)}\n`,
      [expect.stringMatching(/too large for a configuration/) as unknown as string],
    ],
  ])("%s", (_, yaml, expected) => {
    expect(problemsOf({ yaml })).toEqual(expected);
  });

  it("reports all problems at once", () => {
    expect(problemsOf({ yaml: "a: 1\nb: 2\ntape: { drain_s: x }\n" })).toHaveLength(3);
  });

  it("resolves anchors, and rejects those that expand without bound", () => {
    const shared = "tape:\n  reactors:\n    outbox: &tuning { batch: 7, concurrency: 9 }\n    timers: *tuning\n";
    expect(load({ yaml: shared }).settings.tape.reactors.timers).toMatchObject({ batch: 7, concurrency: 9 });
    const many = Array.from(
      { length: 9 },
      (_, k) => `k${k}: &a${k} { ${"abcdefghij".replaceAll(/./g, (c) => `${c}: ${k ? `*a${k - 1}` : 1}, `)} }`,
    );
    expect(problemsOf({ yaml: `${many.join("\n")}\n` })[0]).toContain("too large for a configuration");
  });
});

describe("contradicting settings", () => {
  it.each([
    ["lease_ttl_s: 10, heartbeat_s: 6", "heartbeat_s: 6 s is more than half of lease_ttl_s (10 s)"],
    ["heartbeat_s: 20", "more than half of lease_ttl_s (30 s)"],
    ["max_stall_s: 10", "max_stall_s: 10 s is not longer than the heartbeat"],
    ["backoff: { base_ms: 2000, cap_ms: 1000 }", "backoff.base_ms: 2000 ms is more than cap_ms (1000 ms)"],
  ])("rejects %s", (settings, message) => {
    const [problem, ...rest] = problemsOf({ yaml: `tape:\n  reactors:\n    outbox: { ${settings} }\n` });
    expect(rest).toEqual([]);
    expect(problem).toMatch(/^tape\.yaml:3:\d+: tape\.reactors\.outbox\./);
    expect(problem).toContain(message);
  });

  it("accepts a heartbeat of half the lease", () => {
    const yaml = "tape: { reactors: { outbox: { lease_ttl_s: 10, heartbeat_s: 5 } } }\n";
    expect(load({ yaml }).settings.tape.reactors.outbox.heartbeat_s).toBe(5);
  });

  it("rejects processes: single on PostgreSQL, and a bad reactor name", () => {
    expect(problemsOf({ yaml: "tape:\n  store: { url: postgres://a/b, processes: single }\n" })).toEqual([
      "tape.yaml:2:44: tape.store.processes: single is only for SQLite files",
    ]);
    expect(problemsOf({ yaml: "tape:\n  reactors:\n    My Reactor: { handler: a#b }\n" })[0]).toContain("My Reactor");
  });

  it("names the source of the value to change", () => {
    const yaml = "tape:\n  reactors:\n    outbox: { lease_ttl_s: 10 }\n";
    const env = { TAPE_REACTORS_OUTBOX_HEARTBEAT_S: "8" };
    expect(problemsOf({ yaml, env })[0]).toMatch(/^TAPE_REACTORS_OUTBOX_HEARTBEAT_S: /);
  });
});

describe("${…} in values", () => {
  const url = (yaml: string, env: Record<string, string> = {}) => load({ yaml, env }).settings.tape.store.url;

  it("is replaced by the variable, or by the default if that is unset or empty", () => {
    const yaml = "tape: { store: { url: 'postgres://${USER}@${DB_HOST:-localhost}/x' } }\n";
    expect(url(yaml, { USER: "ada" })).toBe("postgres://ada@localhost/x");
    expect(url(yaml, { USER: "ada", DB_HOST: "" })).toBe("postgres://ada@localhost/x");
    expect(url(yaml, { USER: "ada", DB_HOST: "db" })).toBe("postgres://ada@db/x");
    expect(url("tape: { store: { url: 'sqlite:$${A}${B:-}' } }\n")).toBe("sqlite:${A}");
  });

  it("is converted to the type of the setting, quoted or not", () => {
    const yaml = 'tape:\n  reactors:\n    outbox:\n      batch: ${BATCH:-7}\n      enabled: "${ON:-false}"\n';
    expect(load({ yaml }).settings.tape.reactors.outbox).toMatchObject({ batch: 7, enabled: false });
    expect(load({ yaml, env: { BATCH: "9", ON: "true" } }).settings.tape.reactors.outbox).toMatchObject({
      batch: 9,
      enabled: true,
    });
    expect(problemsOf({ yaml, env: { BATCH: "lots" } })).toEqual([
      "tape.yaml:4:14: tape.reactors.outbox.batch must be a whole number",
    ]);
  });

  it("does not convert quoted text without a variable", () => {
    expect(problemsOf({ yaml: 'tape:\n  reactors:\n    outbox:\n      batch: "7"\n' })).toEqual([
      "tape.yaml:4:14: tape.reactors.outbox.batch must be a whole number",
    ]);
  });

  it("is rejected with its place when the variable is missing or malformed", () => {
    expect(problemsOf({ yaml: "tape:\n  tenant: ${MISSING}\n" })).toEqual([
      "tape.yaml:2:11: variable MISSING is not set; set it, or add a default with ${MISSING:-…}",
    ]);
    for (const broken of ["${", "${A", "${1}", "${A-b}", "${}"]) {
      const [problem] = problemsOf({ yaml: `tape:\n  tenant: "${broken}"\n`, env: { A: "x" } });
      expect(problem).toMatch(/^tape\.yaml:2:11: .*must be \$\{NAME\}/);
    }
  });
});

describe("origins", () => {
  const yaml = "tape:\n  reactors:\n    outbox: { batch: 5, concurrency: '${C:-6}' }\n    mine: { handler: a#b }\n";

  it("rank flag over environment over file over default", () => {
    const env = { TAPE_REACTORS_OUTBOX_BATCH: "6", TAPE_REACTORS_MINE_INTERVAL_MS: "5", TAPE_STORE_URL: "memory:" };
    const flags = [{ path: "tape.reactors.outbox.batch", text: "7", flag: "--set" }];
    const batch = "tape.reactors.outbox.batch";
    expect(described(load({}), batch)).toEqual([50, "default"]);
    expect(described(load({ yaml }), batch)).toEqual([5, "tape.yaml:3:22"]);
    expect(described(load({ yaml, env }), batch)).toEqual([6, "TAPE_REACTORS_OUTBOX_BATCH"]);
    expect(described(load({ yaml, env, flags }), batch)).toEqual([7, "--set"]);
    expect(described(load({ yaml, env }), "tape.reactors.mine.interval_ms")).toEqual([
      5,
      "TAPE_REACTORS_MINE_INTERVAL_MS",
    ]);
    expect(described(load({ env }), "tape.store.url")).toEqual(["memory:", "TAPE_STORE_URL"]);
    expect(described(load({ yaml, env: { TAPE_REACTORS_OUTBOX_BATCH: "" } }), batch)).toEqual([5, "tape.yaml:3:22"]);
  });

  it("list the variables inserted into a value of the file", () => {
    const found = describeConfig(load({ yaml })).find(({ path }) => path.endsWith("outbox.concurrency"));
    expect(found).toMatchObject({ value: 6, variables: ["C"] });
  });

  it("name the variable or flag with a bad value", () => {
    expect(problemsOf({ env: { TAPE_REACTORS_OUTBOX_BATCH: "lots", TAPE_REACTORS_TIMERS_ENABLED: "yes" } })).toEqual([
      "TAPE_REACTORS_OUTBOX_BATCH: tape.reactors.outbox.batch must be a whole number",
      "TAPE_REACTORS_TIMERS_ENABLED: tape.reactors.timers.enabled must be true or false",
    ]);
    const flags = [{ path: "tape.stor.url", text: "x", flag: "--set" }];
    expect(problemsOf({ flags })).toEqual(["--set: unknown setting tape.stor.url; did you mean tape.store.url?"]);
  });

  it("suggest a setting for a misspelt variable, and ignore others", () => {
    const env = { TAPE_STORE_ULR: "x", TAPE_SERVICE_PORT_HTTP_ADDRESS_7878: "1", TAPE_REPLICA_ID: "a" };
    expect(load({ env }).warnings).toEqual(["variable TAPE_STORE_ULR is not a setting; did you mean TAPE_STORE_URL?"]);
  });
});

it("alarms are a mode of timers alone, and need a service", () => {
  const alarms = "push: { alarms: { kind: cloud_tasks } }";
  expect(load({ yaml: `tape: { reactors: { timers: { mode: alarms } }, ${alarms} }\n` }).warnings).toEqual([]);
  expect(problemsOf({ yaml: "tape: { reactors: { timers: { mode: alarms } } }\n" })).toEqual([
    "tape.yaml:1:37: tape.reactors.timers.mode: alarms needs tape.push.alarms with a kind",
  ]);
  expect(problemsOf({ yaml: `tape: { reactors: { outbox: { mode: alarms } }, ${alarms} }\n` })).toEqual([
    "tape.yaml:1:37: tape.reactors.outbox.mode: alarms is only for timers; other reactors have loop or push",
  ]);
});

it("warns about settings without effect", () => {
  const yaml =
    "tape: { reactors: { timers: { batch: 5, lease_ttl_s: 9 }, recovery: { max_attempts: 3, batch: 2 } } }\n";
  expect(load({ yaml }).warnings).toEqual([
    "tape.reactors.recovery.max_attempts has no effect: a run that crashes its process five times becomes STUCK",
    "tape.reactors.timers.lease_ttl_s has no effect: a firing is one transaction and needs no lease",
  ]);
});

describe("secrets", () => {
  const canary = "hunter2";

  it.each([
    [`postgres://ada:${canary}@db/x`, "postgres://ada:***@db/x"],
    [`postgres://ada:${canary}@with@db/x`, "postgres://ada:***@db/x"],
    [`postgres://db/x?password=${canary}&schema=tape`, "postgres://db/x?password=***&schema=tape"],
    ["postgres://ada@db/x", "postgres://ada@db/x"],
    ["sqlite:./a.db?processes=single", "sqlite:./a.db?processes=single"],
  ])("are masked in %s when printed", (url, masked) => {
    const config = load({ env: { TAPE_STORE_URL: url } });
    expect(config.settings.tape.store.url).toBe(url);
    expect(described(config, "tape.store.url")).toEqual([masked, "TAPE_STORE_URL"]);
    expect(JSON.stringify(describeConfig(config))).not.toContain(canary);
  });

  it("of sinks and of the waker are masked when printed", () => {
    const yaml = `tape:
  push: { waker: { url: "https://ada:${canary}@x.example", secrets: [${canary}] } }
  events:
    sinks:
      hook: { kind: webhook, url: "https://x.example/?token=${canary}", secrets: [${canary}] }
      bus: { kind: nats, servers: ["nats://ada:${canary}@bus"], token: ${canary}, password: ${canary} }
`;
    const printed = JSON.stringify(describeConfig(load({ yaml })));
    expect(printed).not.toContain(canary);
    expect(printed).toContain("nats://ada:***@bus");
  });

  it("are not repeated in error messages", () => {
    const yaml = `tape:\n  store:\n    url: { password: ${canary} }\n    processes: ${canary}\n  drain_s: ${canary}\n`;
    const found = problemsOf({ yaml, env: { TAPE_REACTORS_OUTBOX_BATCH: canary } });
    expect(found.length).toBeGreaterThanOrEqual(4);
    expect(found.join("\n")).not.toContain(canary);
  });
});

describe("settings of a deployment", () => {
  it("keep their variables, and no variable of the environment sets them", () => {
    const yaml = "tape:\n  deploy: { image: 'app:${GIT_SHA}', server: { egress: ['10.0.0.0/8:443'] } }\n";
    const { settings, warnings } = load({ yaml, env: { TAPE_DEPLOY_IMAGE: "other", TAPE_DEPLOY_DEFAULTS_MIN: "9" } });
    expect(settings.tape.deploy.image).toBe("app:${GIT_SHA}");
    expect(settings.tape.deploy.server.egress).toEqual(["10.0.0.0/8:443"]);
    expect(settings.tape.deploy.defaults.min).toBe(1);
    expect(warnings).toEqual([]);
  });
});
