import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { accepts, freePort, type ServerProcess, startServer } from "./process.ts";
import { findProgram, findPubsubEmulator } from "./programs.ts";

/** A server process and the address of its clients. */
export interface Broker extends ServerProcess {
  readonly url: string;
}

const at = (server: ServerProcess, url: string): Broker =>
  Object.defineProperty(server as ServerProcess & { url: string }, "url", { value: url });

/** A real Redis. `appendfsync always`: what it has confirmed is on disk, so a killed server keeps it. */
export async function startRedis(): Promise<Broker> {
  const { path, env } = findProgram("redis-server");
  const port = await freePort();
  const settings = { bind: "127.0.0.1", appendonly: "yes", appendfsync: "always", save: "", port: `${port}` };
  const flags = Object.entries(settings).flatMap(([key, value]) => [`--${key}`, value]);
  const server = await startServer({
    ...{ name: "redis", path, env, args: (folder) => [...flags, "--dir", folder] },
    ready: (output) => output.includes("Ready to accept connections"),
  });
  return at(server, `redis://127.0.0.1:${port}`);
}

/**
 * A real NATS with JetStream. `always`: what it has confirmed is on disk. `default`: it writes to the disk every two
 * minutes, as it does unless it is set up otherwise.
 */
export async function startNats(sync: "always" | "default" = "always"): Promise<Broker> {
  const { path, env } = findProgram("nats-server");
  const port = await freePort();
  const args = (folder: string): string[] => {
    const file = join(folder, "nats.conf");
    const interval = sync === "always" ? ", sync_interval: always" : "";
    writeFileSync(file, `listen: "127.0.0.1:${port}"\njetstream: { store_dir: "${folder}"${interval} }\n`);
    return ["--config", file];
  };
  const server = await startServer({ name: "nats", path, env, args, ready: (output) => output.includes("is ready") });
  return at(server, `nats://127.0.0.1:${port}`);
}

/** Nodes of one NATS cluster, by the name that the server reports as leader. */
export async function startNatsCluster(size: number): Promise<ReadonlyMap<string, Broker>> {
  const { path, env } = findProgram("nats-server");
  const nodes = await Promise.all(
    Array.from({ length: size }, async (_, k) => ({
      ...{ name: `n${k + 1}`, port: await freePort(), route: await freePort() },
    })),
  );
  const routes = nodes.map(({ route }) => `"nats://127.0.0.1:${route}"`).join(", ");
  const started = nodes.map(async ({ name, port, route }) => {
    const args = (folder: string): string[] => {
      const file = join(folder, "nats.conf");
      const lines = [
        `server_name: ${name}`,
        `listen: "127.0.0.1:${port}"`,
        `jetstream: { store_dir: "${folder}", sync_interval: always }`,
        `cluster: { name: tape, listen: "127.0.0.1:${route}", routes: [${routes}] }`,
      ];
      writeFileSync(file, `${lines.join("\n")}\n`);
      return ["--config", file];
    };
    const server = await startServer({ name: "nats", path, env, args, ready: () => accepts(port) });
    return [name, at(server, `nats://127.0.0.1:${port}`)] as const;
  });
  return new Map(await Promise.all(started));
}

/** librdkafka's mock of a Kafka cluster, inside a kcat that waits for input: it speaks the protocol and keeps nothing. */
export async function startKafkaMock(): Promise<Broker> {
  const { path, env } = findProgram("kcat");
  const bootstrap = /bootstrap\.servers=(\S+)/;
  const server = await startServer({
    ...{ name: "kafka-mock", path, env, ready: (output) => bootstrap.test(output) },
    args: () => ["-P", "-t", "warm", "-b", "mock", "-X", "test.mock.num.brokers=3", "-X", "debug=mock"],
  });
  return at(server, bootstrap.exec(server.output())![1]!);
}

/** Google's emulator of Pub/Sub. It keeps nothing on disk. */
export async function startPubsubEmulator(): Promise<Broker> {
  const jar = findPubsubEmulator();
  const port = await freePort();
  const server = await startServer({
    ...{ name: "pubsub", path: "java", ready: (output) => output.includes("Server started") },
    args: () => ["-Xmx256m", "-jar", jar, "--host=127.0.0.1", `--port=${port}`],
  });
  return at(server, `http://127.0.0.1:${port}`);
}
