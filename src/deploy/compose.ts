import type { Plan, Service } from "./plan.ts";
import { preamble, step } from "./script.ts";
import { type RenderedFile, scriptFile, shellWord, yamlFile } from "./text.ts";

const metricsPort = 9464;
const serverPort = 7878;
/** A process that is stopping may use all of `drain_s`; the rest is for closing connections. */
const marginS = 10;

interface ComposeService {
  readonly image: string;
  readonly init?: true;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly environment: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly command?: readonly string[];
  readonly restart: string;
  readonly healthcheck?: Readonly<Record<string, unknown>>;
  readonly stop_grace_period?: string;
  readonly deploy?: Readonly<Record<string, unknown>>;
  readonly read_only?: true;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
}

/** Everything on one host: PostgreSQL, the schema, the server and a container for each reactor. */
export function renderCompose(plan: Plan, project: string, folder: string): RenderedFile[] {
  const services = Object.fromEntries(plan.services.map((service) => [service.object, composeService(plan, service)]));
  const { store, migrate } = plan;
  const file = {
    name: plan.project,
    services: {
      ...(store.kind === "postgres" && { "tape-db": database(plan) }),
      ...(migrate !== undefined && { "tape-migrate": migration(plan, migrate, dockerfile(project, folder)) }),
      ...services,
    },
    ...(store.kind === "postgres" && { volumes: { "tape-db": {} } }),
  };
  return [yamlFile("compose.yaml", [file]), scriptFile("deploy.sh", "bash", script(plan))];
}

/** The Dockerfile, relative to the folder from which the image is built. */
const dockerfile = (project: string, folder: string) => ({ context: project, dockerfile: `${folder}/Dockerfile` });

/** The variable with the password of the database, which Compose reads from its environment or from `.env`. */
const passwordOf = ({ store }: Plan): string =>
  (store.kind === "postgres" ? store.password : undefined) ?? "DB_PASSWORD";

const accountOf = ({ store }: Plan) => ({
  user: (store.kind === "postgres" ? store.user : undefined) ?? "tape",
  name: (store.kind === "postgres" ? store.database : undefined) ?? "tape",
});

const required = (name: string): string => `\${${name}:?set ${name}}`;

function environment(plan: Plan, own: Readonly<Record<string, string>>): Record<string, string> {
  const { user, name } = accountOf(plan);
  const password = passwordOf(plan);
  const secrets = Object.fromEntries(Object.keys(plan.secrets).map((key) => [key, required(key)]));
  // The network belongs to this project alone and does not leave the host, so the connection is not encrypted.
  const url = `postgres://${user}:${required(password)}@tape-db:5432/${name}?sslmode=disable`;
  return {
    ...escaped({ ...plan.env, ...own }),
    ...secrets,
    ...(plan.store.kind === "postgres" && { TAPE_STORE_URL: url }),
  };
}

/** Compose replaces `$` in values, too. */
const escaped = (env: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value.replaceAll("$", "$$$$")]));

function database(plan: Plan): ComposeService {
  const { user, name } = accountOf(plan);
  return {
    image: "postgres:18",
    environment: { POSTGRES_DB: name, POSTGRES_PASSWORD: required(passwordOf(plan)), POSTGRES_USER: user },
    volumes: ["tape-db:/var/lib/postgresql"],
    restart: "unless-stopped",
    healthcheck: { test: ["CMD", "pg_isready", "--username", user, "--dbname", name], interval: "2s", retries: 30 },
    stop_grace_period: "60s",
  };
}

const hardened = {
  read_only: true,
  tmpfs: ["/tmp"],
  cap_drop: ["ALL"],
  security_opt: ["no-new-privileges:true"],
} as const;

function migration(plan: Plan, args: readonly string[], build: ReturnType<typeof dockerfile>): ComposeService {
  return {
    image: plan.image,
    build,
    ...(plan.store.kind === "postgres" && { depends_on: { "tape-db": { condition: "service_healthy" } } }),
    environment: environment(plan, {}),
    command: ["node", ...args],
    restart: "on-failure",
    ...hardened,
  };
}

function composeService(plan: Plan, service: Service): ComposeService {
  const { role, args, cpu, memory, min } = service;
  const server = role === "server";
  const port = server ? serverPort : metricsPort;
  const own = server
    ? { TAPE_SERVER_LISTEN: `0.0.0.0:${port}`, TAPE_SERVER_CREDENTIALS: "required", TAPE_SERVER_PLAIN: "accepted" }
    : { TAPE_METRICS_LISTEN: `0.0.0.0:${port}` };
  const check = `fetch("http://127.0.0.1:${port}/livez").then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))`;
  return {
    image: plan.image,
    ...(plan.migrate !== undefined && {
      depends_on: { "tape-migrate": { condition: "service_completed_successfully" } },
    }),
    environment: environment(plan, own),
    ...(server && { ports: [`127.0.0.1:${port}:${port}`] }),
    command: ["node", ...args],
    restart: "unless-stopped",
    healthcheck: { test: ["CMD", "node", "--eval", check], interval: "10s", timeout: "5s", retries: 3 },
    stop_grace_period: `${Math.ceil(plan.drainS) + marginS}s`,
    // Several servers on one host would need several ports.
    deploy: { replicas: server ? 1 : min, resources: { limits: { cpus: cpus(cpu), memory: bytes(memory) } } },
    ...hardened,
  };
}

const cpus = (cpu: string): string => (cpu.endsWith("m") ? String(Number(cpu.slice(0, -1)) / 1_000) : cpu);
/** Compose writes mebibytes as `m`. */
const bytes = (memory: string): string => memory.replace(/Mi$/, "m").replace(/Gi$/, "g");

function script(plan: Plan): string[] {
  const names = [
    ...new Set([...Object.keys(plan.secrets), ...(plan.store.kind === "postgres" ? [passwordOf(plan)] : [])]),
  ];
  const [first] = preamble(plan);
  const compose = "docker compose --file compose.yaml";
  return [
    first!,
    ...step("build the image"),
    `${compose} build`,
    ...step(
      `start; ${names.length > 0 ? `secrets come from .env or the environment: ${names.join(", ")}` : "no secrets"}`,
    ),
    `${compose} up --detach --wait`,
    ...step("their state"),
    `${compose} ps ${shellWord("--format")} table`,
  ];
}
