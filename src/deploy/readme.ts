import type { Plan, Service, Target } from "./plan.ts";
import type { RenderedFile } from "./text.ts";

const title: Readonly<Record<Target, string>> = {
  kubernetes: "Tape on Kubernetes",
  gcp: "Tape on Cloud Run",
  compose: "Tape with Docker Compose",
  systemd: "Tape with systemd",
};

/** The page in the folder: what is there, what has to exist first, and what was decided for which reason. */
export function readme(target: Target, plan: Plan): RenderedFile {
  const lines = [
    `# ${title[target]}`,
    "",
    "Rendered by `durable-tape deploy` from `tape.yaml`; change that file and render again. A file that was edited here is not overwritten. These files were checked by schemas and linters. They were not deployed by the program that wrote them.",
    "",
    "`./deploy.sh` has all commands in their order. Read it before the first time.",
    "",
    "## Services",
    "",
    "| service | replicas | CPUs | memory | may reach |",
    "|---|---|---|---|---|",
    ...plan.services.map((service) => serviceRow(target, plan, service)),
    "",
    ...connectionLines(plan),
    ...secretLines(target, plan),
    "## Decisions",
    "",
    ...[...shared(plan), ...decisions[target](plan)].map((text) => `- ${text}`),
  ];
  return { path: "README.md", text: `${lines.join("\n")}\n` };
}

function serviceRow(
  target: Target,
  { deploy }: Plan,
  { role, object, min, max, cpu, memory, egress }: Service,
): string {
  const fixed =
    target === "systemd" ||
    target === "compose" ||
    (deploy.gcp.workers === "pool" && target === "gcp" && (role === "reactor" || role === "sink"));
  const replicas = target === "systemd" ? "1" : fixed || min === max ? String(min) : `${min} to ${max}`;
  const reach =
    egress === "any"
      ? "any address"
      : ["the database", ...egress.map(({ cidr, port }) => `${cidr}:${port}`)].join(", ");
  return `| \`${object}\` | ${replicas} | ${cpu} | ${memory} | ${target === "kubernetes" ? reach : "any address"} |`;
}

function connectionLines({ connections, deploy }: Plan): string[] {
  if (connections === 0) return [];
  return [
    `At their maximum they open ${connections} connections; the database allows ${deploy.database.connections}.`,
    "",
  ];
}

const howToStore: Readonly<Record<Target, (secret: string, variable: string) => string>> = {
  kubernetes: (secret) => `kubectl create secret generic ${secret} --from-file=value=/dev/stdin`,
  gcp: (secret) => `gcloud secrets create ${secret} --data-file=-`,
  compose: (_, variable) => `echo "${variable}=…" >> .env`,
  systemd: (secret) => `install -m 0600 /dev/stdin /etc/tape/credentials/${secret}`,
};

function secretLines(target: Target, { secrets }: Plan): string[] {
  const names = Object.entries(secrets);
  if (names.length === 0) return [];
  return [
    "## Secrets",
    "",
    "They have to exist first. Each command reads the value from its standard input, so that it is in no history.",
    "",
    "```sh",
    ...names.map(([variable, secret]) => howToStore[target](secret, variable)),
    "```",
    "",
  ];
}

const shared = (plan: Plan): string[] => [
  "Every service runs the same image and the same `tape.yaml`, with another command.",
  `A stopping process has ${plan.drainS} s for its active work (\`tape.drain_s\`), and then releases its leases.`,
  ...(plan.migrate === undefined
    ? []
    : ["The schema is upgraded first. Migrations only add, so the running version keeps working."]),
  ...(plan.services.some(({ role }) => role === "sink")
    ? ["One replica of a sink sends its events. Others stand by, so sinks have no autoscaler."]
    : []),
];

const decisions: Readonly<Record<Target, (plan: Plan) => string[]>> = {
  kubernetes: (plan) => [
    "`terminationGracePeriodSeconds` is `drain_s` and 10 s more.",
    "A PodDisruptionBudget exists from 2 replicas on; with one replica it would only block the drain of a node.",
    "A service with `min` below `max` has an autoscaler, which owns the number of replicas.",
    "Network policies deny everything but DNS, the database and `egress`. The address of the cloud's metadata server is always excluded. They need a network plugin that enforces them.",
    ...(plan.deploy.database.egress === undefined
      ? [`The database may be at any address, on its port. \`tape.deploy.database.egress\` narrows that.`]
      : []),
    "The server has an address within the cluster and accepts tokens without TLS there: TLS ends at your ingress.",
    "Pods run as user 1000 without capabilities, on a read-only file system, without a token of the cluster.",
  ],
  gcp: (plan) => [
    "`TAPE_DRAIN_S` is at most 8: Cloud Run kills a process 10 s after SIGTERM.",
    "The CPU of a process that polls is never throttled, and at least one instance runs: heartbeats must not stop between requests.",
    ...(plan.services.some(({ role }) => role === "handler")
      ? [
          `Handlers have no instance while nothing is due. A request may take ${plan.push.withinS} s and 10 s more; only the service account \`tape-push\` may call.`,
          "A wake-up is dropped after ten minutes, and none becomes a dead letter: the work stays due.",
        ]
      : []),
    plan.deploy.gcp.workers === "pool"
      ? "Reactors are worker pools: they have no port and a fixed number of instances, `min`."
      : "A service without requests is not scaled by requests: set `min` to what the load needs.",
    "Every service has a service account of its own, which may read the secrets.",
    "`egress` is not enforced: Cloud Run has no rule for one service's outgoing addresses.",
    "The server is reached through a load balancer or from the network, and checks its own tokens instead of IAM's.",
  ],
  compose: () => [
    "PostgreSQL is part of the project; its data is in the volume `tape-db`. Back it up.",
    "The connection to the database is not encrypted: it does not leave the project's network on this host.",
    "The server listens on the host's loopback address only; put a proxy with TLS in front of it.",
    "`min` is the number of containers of a reactor or sink. `max` and `egress` have no effect.",
  ],
  systemd: () => [
    "One process for each reactor and sink. `min`, `max`, CPUs, memory and `egress` have no effect.",
    "Secrets are credentials of systemd: files that only the service can read. `run.sh` passes them on as variables.",
    "The units see a read-only system; `/var/lib/tape` is writable.",
    "Each of them has a port of its own for probes and metrics, on the loopback address, from 9464 on.",
  ],
};
