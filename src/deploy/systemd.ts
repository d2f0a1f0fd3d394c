import type { Plan, Service } from "./plan.ts";
import { step } from "./script.ts";
import { plainFile, type RenderedFile, scriptFile, shellWord } from "./text.ts";

/** Reactors of one host have ports of their own, from this one on. */
const firstMetricsPort = 9464;
/** A process that is stopping may use all of `drain_s`; the rest is for closing connections. */
const marginS = 10;

/** Units for one host: a template for the reactors, one for the server, and a target that starts all. */
export function renderSystemd(plan: Plan, project: string): RenderedFile[] {
  const reactors = plan.services.filter(({ role, name }) => role === "reactor" && name !== "announcer");
  const sinks = plan.services.filter(({ role }) => role === "sink");
  const announcer = plan.services.find(({ name }) => name === "announcer");
  const server = plan.services.find(({ role }) => role === "server");
  const units = [
    ...[server, announcer].flatMap((service) => (service === undefined ? [] : [`${service.object}.service`])),
    ...[...reactors, ...sinks].map(instanceOf),
  ];
  return [
    ...(plan.migrate === undefined ? [] : [unit("tape-migrate.service", migrateUnit(plan, plan.migrate))]),
    ...(server === undefined ? [] : [unit("tape-server.service", serviceUnit(plan, "Tape server", server.args))]),
    ...(announcer === undefined
      ? []
      : [unit("tape-announcer.service", serviceUnit(plan, "Tape announcer", announcer.args))]),
    ...templates(plan, "reactor", reactors),
    ...templates(plan, "sink", sinks),
    unit("tape.target", {
      Unit: { Description: "Tape", Wants: units.join(" "), After: "network-online.target" },
      Install: { WantedBy: "multi-user.target" },
    }),
    plainFile("tape.env", environment(plan)),
    ...[...reactors, ...sinks].map((service, k) =>
      plainFile(envFileOf(service), [`TAPE_METRICS_LISTEN=127.0.0.1:${firstMetricsPort + k}`]),
    ),
    scriptFile("run.sh", "sh", runScript(plan)),
    scriptFile("deploy.sh", "bash", deployScript(plan, [...reactors, ...sinks], units, project)),
  ];
}

const instanceOf = ({ role, name }: Service): string => `tape-${role}@${name}.service`;
const envFileOf = ({ role, name }: Service): string => `${role}-${name}.env`;

/** One template for all services of a role. `%i`: systemd replaces it by what follows the @ of the unit's name. */
function templates(plan: Plan, role: "reactor" | "sink", services: readonly Service[]): RenderedFile[] {
  const [first] = services;
  if (first === undefined) return [];
  const args = [...first.args.slice(0, -1), role === "sink" ? "sink-%i" : "%i"];
  return [unit(`tape-${role}@.service`, serviceUnit(plan, `Tape ${role} %i`, args, [`/etc/tape/${role}-%i.env`]))];
}

type Section = Readonly<Record<string, string | readonly string[]>>;

function unit(path: string, sections: Readonly<Record<string, Section>>): RenderedFile {
  const lines = Object.entries(sections).flatMap(([name, settings]) => [
    `[${name}]`,
    ...Object.entries(settings).flatMap(([key, value]) => [value].flat().map((text) => `${key}=${text}`)),
    "",
  ]);
  return plainFile(path, lines.slice(0, -1));
}

/** What a process of Tape needs of the system: the network, its folder, and nothing else. */
const hardening: Section = {
  NoNewPrivileges: "true",
  ProtectSystem: "strict",
  ProtectHome: "true",
  PrivateTmp: "true",
  PrivateDevices: "true",
  ProtectKernelTunables: "true",
  ProtectKernelModules: "true",
  ProtectKernelLogs: "true",
  ProtectControlGroups: "true",
  ProtectClock: "true",
  ProtectHostname: "true",
  RestrictNamespaces: "true",
  RestrictRealtime: "true",
  RestrictSUIDSGID: "true",
  LockPersonality: "true",
  CapabilityBoundingSet: "",
  RestrictAddressFamilies: "AF_INET AF_INET6 AF_UNIX",
  SystemCallArchitectures: "native",
  UMask: "0077",
};

function serviceSection(plan: Plan, args: readonly string[]): Section {
  const { folder, user } = plan.deploy.systemd;
  const secrets = [...new Set(Object.values(plan.secrets))];
  return {
    User: user,
    Group: user,
    WorkingDirectory: folder,
    // The only folder that is writable; an SQLite store is in it.
    StateDirectory: "tape",
    EnvironmentFile: "/etc/tape/tape.env",
    LoadCredential: secrets.map((name) => `${name}:/etc/tape/credentials/${name}`),
    ExecStart: ["/etc/tape/run.sh", "node", ...args].join(" "),
    ...hardening,
  };
}

function serviceUnit(
  plan: Plan,
  description: string,
  args: readonly string[],
  own: readonly string[] = [],
): Record<string, Section> {
  const { EnvironmentFile, ...rest } = serviceSection(plan, args);
  return {
    Unit: {
      Description: description,
      PartOf: "tape.target",
      ...ordering(plan),
    },
    Service: {
      Type: "exec",
      EnvironmentFile: [EnvironmentFile as string, ...own],
      ...rest,
      KillSignal: "SIGTERM",
      TimeoutStopSec: String(Math.ceil(plan.drainS) + marginS),
      Restart: "always",
      RestartSec: "2",
    },
    Install: { WantedBy: "tape.target" },
  };
}

/** Not `Requires`: upgrading the schema would then stop every process first. */
function ordering({ migrate }: Plan): Section {
  const first = migrate === undefined ? "network-online.target" : "network-online.target tape-migrate.service";
  return { After: first, Wants: first };
}

function migrateUnit(plan: Plan, args: readonly string[]): Record<string, Section> {
  return {
    Unit: { Description: "Tape schema", After: "network-online.target", Wants: "network-online.target" },
    Service: { Type: "oneshot", RemainAfterExit: "true", TimeoutStartSec: "900", ...serviceSection(plan, args) },
  };
}

/** Double quotes, in which systemd treats only `\` and `"` specially. */
const quoted = (value: string): string => `"${value.replaceAll(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`;

function environment(plan: Plan): string[] {
  const store = plan.store.kind === "sqlite" ? ["TAPE_STORE_URL=sqlite:/var/lib/tape/tape.db"] : [];
  return [
    "NODE_ENV=production",
    ...store,
    ...Object.entries(plan.env).map(([name, value]) => `${name}=${quoted(value)}`),
  ];
}

/** systemd hands credentials over as files; the process reads variables. `exec` keeps the process, so SIGTERM reaches it. */
function runScript(plan: Plan): string[] {
  return [
    ...Object.entries(plan.secrets).flatMap(([name, secret]) => [
      `${name}=$(cat "$CREDENTIALS_DIRECTORY/${secret}")`,
      `export ${name}`,
    ]),
    'exec "$@"',
  ];
}

function deployScript(plan: Plan, instances: readonly Service[], units: readonly string[], project: string): string[] {
  const { folder, user } = plan.deploy.systemd;
  const secrets = [...new Set(Object.values(plan.secrets))];
  const envFiles = ["tape.env", ...instances.map(envFileOf)].map(shellWord);
  const roles = [...new Set(instances.map(({ role }) => role))];
  const unitFiles = [
    ...(plan.migrate === undefined ? [] : ["tape-migrate.service"]),
    ...units.filter((name) => !name.includes("@")),
    ...roles.map((role) => `tape-${role}@.service`),
    "tape.target",
  ];
  return [
    'cd "$(dirname "$0")"',
    ...step("install the program"),
    `id ${user} >/dev/null 2>&1 || useradd --system --home-dir ${folder} --shell /usr/sbin/nologin ${user}`,
    `mkdir -p ${folder} /etc/tape/credentials`,
    "chmod 0700 /etc/tape/credentials",
    `tar --create --directory ${shellWord(project)} --exclude ./node_modules --exclude ./.git --exclude ./.tape --exclude './.env*' . | tar --extract --directory ${folder}`,
    `(cd ${folder} && npm ci --omit=dev --ignore-scripts)`,
    ...(secrets.length > 0 ? step("check that the secrets exist") : []),
    ...secrets.map((name) => `test -s /etc/tape/credentials/${name}`),
    ...step("install the units"),
    `install --mode 0644 ${envFiles.join(" ")} /etc/tape/`,
    "install --mode 0755 run.sh /etc/tape/",
    `install --mode 0644 ${unitFiles.join(" ")} /etc/systemd/system/`,
    "systemctl daemon-reload",
    ...(plan.migrate === undefined
      ? []
      : [...step("create or upgrade the schema"), "systemctl restart tape-migrate.service"]),
    ...step("start"),
    `systemctl enable tape.target ${units.join(" ")}`,
    `systemctl restart ${units.join(" ")}`,
    "systemctl start tape.target",
    ...step("their state"),
    `systemctl is-active ${units.join(" ")}`,
  ];
}
