import { isIPv4 } from "node:net";
import { defined } from "../base/defined.ts";
import { suggest } from "../base/suggest.ts";
import { badConfig, type LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema.ts";
import { isBuild } from "../model/build.ts";
import { assertNoSecrets, secretWarnings } from "./secrets.ts";
import { type StoreAddress, storeAddress } from "./store-address.ts";

export const targets = ["kubernetes", "gcp", "compose", "systemd"] as const;
export type Target = (typeof targets)[number];

/** A network and a port. */
export interface Egress {
  readonly cidr: string;
  readonly port: number;
}

/** One process of the deployment, with any number of replicas. */
export interface Service {
  readonly role: "server" | "reactor" | "sink" | "handler";
  /** The name of the reactor or sink; `server` for the server, `sweep` for the handler of alarms. */
  readonly name: string;
  /** Name of its objects: `tape-server`, `tape-reactor-outbox`, `tape-sink-billing`. */
  readonly object: string;
  /** Arguments of `node`. */
  readonly args: readonly string[];
  readonly cpu: string;
  readonly memory: string;
  readonly min: number;
  readonly max: number;
  readonly scale: "cpu" | "lag";
  /** What it may reach besides the database and DNS. */
  readonly egress: readonly Egress[] | "any";
}

/** What calls the handlers of reactors that run only during requests. */
export interface PushPlan {
  /** `projects/P/topics/T` of the waker. */
  readonly topic: string | undefined;
  /** `projects/P/locations/L/queues/Q` of the waker or of the alarms. */
  readonly queue: string | undefined;
  /** Whether timers are fired by alarms, which every process that writes sets. */
  readonly alarms: boolean;
  /** How long a handler may take. */
  readonly withinS: number;
}

/** Everything that a renderer needs. It depends on the file alone. */
export interface Plan {
  readonly project: string;
  readonly image: string;
  readonly services: readonly Service[];
  /** Arguments of `node` that create or upgrade the schema; absent for a store behind a server. */
  readonly migrate: readonly string[] | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** Variable → name of its secret. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly drainS: number;
  readonly store: StoreAddress;
  readonly databaseEgress: readonly Egress[];
  readonly push: PushPlan;
  /** Connections to the database with every service at its maximum. */
  readonly connections: number;
  readonly tls: { readonly enabled: boolean; readonly clients: boolean };
  readonly deploy: Config["tape"]["deploy"];
  readonly warnings: readonly string[];
}

const program = (name: string): string => `node_modules/durable-tape/bin/${name}.js`;

/** Decides what is deployed, from the settings and nothing else. */
export function planDeployment(target: Target, loaded: LoadedConfig): Plan {
  const { settings } = loaded;
  const { tape, project } = settings;
  const { deploy } = tape;
  const problem = (path: string, message: string): Error =>
    badConfig([{ where: loaded.file ?? "tape.yaml", message: `${path}: ${message}` }]);
  assertNoSecrets(settings);
  const store = storeAddress(tape.store.url);
  if (store.kind === "sqlite" && target !== "systemd") {
    throw problem("tape.store.url", `${target} runs several containers, which need PostgreSQL; SQLite is for one host`);
  }
  if (deploy.image === undefined && target !== "systemd") {
    throw problem("tape.deploy.image", `${target} needs the name of an image`);
  }
  const services = [...servicesOf(settings, store, problem), ...(target === "gcp" ? handlersOf(tape, problem) : [])];
  const connections = store.kind === "postgres" ? connectionsOf(target, services, store.pool) : 0;
  return {
    ...{ project: project.name ?? "tape", image: deploy.image ?? "", services },
    migrate: store.kind === "server" ? undefined : [program("durable-tape"), "migrate"],
    ...{
      env: { ...buildEnv(deploy.image), ...deploy.env },
      secrets: deploy.secrets,
      drainS: tape.drain_s,
      store,
      deploy,
    },
    databaseEgress: databaseEgress(deploy.database.egress, store, problem),
    push: pushOf(tape),
    connections,
    tls: { enabled: tape.server.tls.cert !== undefined, clients: tape.server.tls.client_ca !== undefined },
    warnings: [...loaded.warnings, ...secretWarnings(deploy.env), ...connectionWarnings(connections, deploy)],
  };
}

/** The tag of the image names the build of its code, for pinned workflows. */
function buildEnv(image = ""): Readonly<Record<string, string>> {
  const tag = /:([^/:@]+)(?:@.*)?$/.exec(image)?.[1];
  return tag !== undefined && tag !== "latest" && isBuild(tag) ? { TAPE_BUILD: tag } : {};
}

type Problem = (path: string, message: string) => Error;

function servicesOf({ tape }: Config, store: StoreAddress, problem: Problem): Service[] {
  const { deploy } = tape;
  const enabled = Object.entries(tape.reactors).filter(([, settings]) => settings.enabled);
  const names = enabled.flatMap(([name, { mode }]) => (mode === "loop" ? [name] : []));
  assertEnabled("reactor", Object.keys(deploy.reactors), names, problem);
  const services: Service[] = names.map((name) => {
    const { egress = name === "timers" ? [] : undefined, ...own } = deploy.reactors[name] ?? {};
    const path = `tape.deploy.reactors.${name}`;
    return {
      ...{ role: "reactor", name, object: `tape-reactor-${name.replaceAll("_", "-")}` },
      args: [program("tape-reactors"), "--only", name],
      ...sized({ ...deploy.defaults, ...defined(own) }, path, problem),
      egress: egress === undefined ? "any" : egress.map((text) => egressOf(text, `${path}.egress`, problem)),
    };
  });
  if (enabled.some(([, { mode }]) => mode === "push")) services.push(announcer(deploy.defaults));
  services.push(...sinksOf(tape, problem));
  const { enabled: isServed, egress = [], ...own } = deploy.server;
  if (isServed && store.kind !== "server") {
    services.unshift({
      ...{ role: "server", name: "server", object: "tape-server", args: [program("durable-tape"), "serve"] },
      ...sized({ ...deploy.defaults, ...defined(own), scale: "cpu" as const }, "tape.deploy.server", problem),
      egress: egress.map((text) => egressOf(text, "tape.deploy.server.egress", problem)),
    });
  }
  const twice = services.find(({ object }, k) => services.findIndex((other) => other.object === object) !== k);
  if (twice !== undefined) {
    const path = twice.role === "sink" ? `tape.events.sinks.${twice.name}` : `tape.reactors.${twice.name}`;
    throw problem(path, `two ${twice.role}s would be named ${twice.object}`);
  }
  return services;
}

const isFiredByAlarms = ({ timers }: Config["tape"]["reactors"]): boolean => timers.enabled && timers.mode === "alarms";

function pushOf({ push: { waker, alarms }, reactors, deploy }: Config["tape"]): PushPlan {
  const hasAlarms = isFiredByAlarms(reactors);
  return {
    topic: waker.kind === "pubsub" ? waker.topic : undefined,
    queue: (hasAlarms ? alarms.queue : undefined) ?? (waker.kind === "cloud_tasks" ? waker.queue : undefined),
    alarms: hasAlarms,
    withinS: deploy.push.within_s,
  };
}

/** Handlers scale to zero, so they have no replica while nothing is due. Their program is the user's. */
function handlersOf({ reactors, deploy }: Config["tape"], problem: Problem): Service[] {
  const { program: file, min, max, cpu, memory } = deploy.push;
  if (file === undefined) return [];
  const named = Object.entries(reactors).flatMap(([name, { enabled, mode }]) =>
    enabled && mode === "push" ? [{ name, object: `tape-reactor-${name}` }] : [],
  );
  const handlers = isFiredByAlarms(reactors) ? [...named, { name: "sweep", object: "tape-sweep" }] : named;
  if (handlers.length === 0) {
    throw problem("tape.deploy.push.program", "no reactor has mode: push, and the timers have no alarms");
  }
  if (max < Math.max(1, min)) throw problem("tape.deploy.push.max", `${max} is less than ${Math.max(1, min)}`);
  const size = { ...defined({ cpu, memory }) };
  const { cpu: usual, memory: usualMemory } = deploy.defaults;
  return handlers.map(({ name, object }) => ({
    ...{ role: "handler", name, object, args: [file], cpu: usual, memory: usualMemory, ...size },
    ...{ min, max, scale: "cpu", egress: "any" },
  }));
}

/** One process sends the events of a sink, and further replicas stand by: no autoscaler would change anything. */
function sinksOf({ deploy, events }: Config["tape"], problem: Problem): Service[] {
  const enabled = Object.entries(events.sinks).filter(([, { enabled: isEnabled }]) => isEnabled);
  const names = enabled.map(([name]) => name);
  assertEnabled("sink", Object.keys(deploy.sinks), names, problem);
  return enabled.map(([name, { kind }]) => {
    const { egress = kind === "log" ? [] : undefined, ...own } = deploy.sinks[name] ?? {};
    const path = `tape.deploy.sinks.${name}`;
    const { cpu, memory } = { ...deploy.defaults, ...defined(own) };
    const { min = 1 } = own;
    return {
      ...{ role: "sink", name, object: `tape-sink-${name.replaceAll("_", "-")}` },
      args: [program("tape-reactors"), "--only", `sink-${name}`],
      ...sized({ cpu, memory, min, max: min, scale: "cpu" }, path, problem),
      egress: egress === undefined ? "any" : egress.map((text) => egressOf(text, `${path}.egress`, problem)),
    };
  });
}

function assertEnabled(what: "reactor" | "sink", given: readonly string[], names: readonly string[], problem: Problem) {
  const unknown = given.find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const near = suggest(unknown, names);
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  throw problem(`tape.deploy.${what}s.${unknown}`, `no such ${what} is enabled${hint}`);
}

/** Wakes the handlers of reactors with mode: push. The handlers are a program of the user's, which is deployed with it. */
function announcer({ cpu, memory }: Config["tape"]["deploy"]["defaults"]): Service {
  return {
    ...{ role: "reactor", name: "announcer", object: "tape-announcer" },
    args: [program("tape-reactors"), "--announce"],
    ...{ cpu, memory, min: 1, max: 1, scale: "cpu", egress: "any" },
  };
}

type Size = Pick<Service, "cpu" | "memory" | "min" | "max" | "scale">;

function sized({ cpu, memory, min, max, scale }: Size, path: string, problem: Problem): Size {
  if (min < 1) throw problem(`${path}.min`, "a process that polls needs at least 1 replica");
  if (max < min) throw problem(`${path}.max`, `${max} is less than min (${min})`);
  return { cpu, memory, min, max, scale };
}

/** Parses `203.0.113.0/24:443` and `[2001:db8::/32]:443`, whose form the schema has checked. */
function egressOf(text: string, path: string, problem: Problem): Egress {
  const [, address = "", bits = "", port = ""] = /^\[?([^/]+)\/(\d+)\]?:(\d+)$/.exec(text) ?? [];
  const v6 = address.includes(":");
  const octets = address.split(".");
  const valid = v6 || (octets.length === 4 && octets.every((octet) => octet !== "" && Number(octet) < 256));
  if (!valid || Number(bits) > (v6 ? 128 : 32)) throw problem(path, `${text} is not a network`);
  if (Number(port) < 1 || Number(port) > 65_535) throw problem(path, `${text} has no valid port`);
  return { cidr: `${address}/${bits}`, port: Number(port) };
}

function databaseEgress(listed: readonly string[] | undefined, store: StoreAddress, problem: Problem): Egress[] {
  if (store.kind === "sqlite") return [];
  if (listed !== undefined) return listed.map((text) => egressOf(text, "tape.deploy.database.egress", problem));
  return [store, ...(store.kind === "postgres" ? store.others : [])].map(({ host, port }) => ({
    cidr: host !== undefined && isIPv4(host) ? `${host}/32` : "0.0.0.0/0",
    port,
  }));
}

/** Each process has a pool and one connection that listens. On one host the number of processes is fixed. */
function connectionsOf(target: Target, services: readonly Service[], pool: number): number {
  const replicas = ({ role, min, max }: Service): number => {
    if (target === "systemd" || (target === "compose" && role === "server")) return 1;
    return target === "compose" ? min : max;
  };
  return services.reduce((sum, service) => sum + replicas(service) * (pool + 1), 0);
}

function connectionWarnings(connections: number, { database }: Config["tape"]["deploy"]): string[] {
  if (connections <= database.connections * 0.8) return [];
  return [
    `at their maximum the services open ${connections} connections, and the database allows ${database.connections}: ` +
      "lower max, add connections=N to tape.store.url, or raise tape.deploy.database.connections with the database's limit",
  ];
}
