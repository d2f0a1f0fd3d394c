import { spawn } from "node:child_process";
import { once } from "node:events";
import { Producer, stringSerializers } from "@platformatic/kafka";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { kafkaSink } from "../../src/events/sinks/kafka.ts";
import { context, eventOf, feedOf, lane, sequences, upTo } from "./sending.ts";
import { findProgram } from "./servers/programs.ts";
import { type Broker, startKafkaMock } from "./servers/servers.ts";

interface Read {
  readonly partition: number;
  readonly key: string;
  readonly headers: readonly string[];
  readonly payload: string;
}

describe("the Kafka sink on librdkafka's mock, which proves the wire format only", () => {
  let mock: Broker;
  beforeAll(async () => {
    mock = await startKafkaMock();
  });
  afterAll(() => mock.stop());

  /** Reads a topic to its end by another client. */
  async function read(topic: string): Promise<Read[]> {
    const { path, env } = findProgram("kcat");
    const flags = ["-C", "-e", "-q", "-J", "-o", "beginning", "-b", mock.url, "-t", topic];
    const child = spawn(path, flags, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.on("data", (data: Buffer) => (output += data));
    await once(child, "close");
    return output
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Read);
  }
  const attribute = ({ headers }: Read, name: string): string => headers[headers.indexOf(`ce_${name}`) + 1]!;

  it("produces each run in order into one partition", async () => {
    const sink = kafkaSink({ brokers: mock.url.split(","), topic: "ordered", connect: { autocreateTopics: true } });
    expect(await lane(sink, feedOf(8, 25), 50)).toEqual({ waits: 0, refused: [] });
    await sink.close!();
    const arrived = await read("ordered");
    const runs = sequences(
      arrived.map((one) => ({ subject: attribute(one, "subject"), sequence: attribute(one, "sequence") })),
    );
    expect(Object.keys(runs)).toHaveLength(8);
    for (const run of Object.values(runs)) expect(run).toEqual(upTo(25));
    const places = new Set(arrived.map(({ key, partition }) => `${key} ${partition}`));
    expect(places.size).toBe(8);
    expect(new Set(arrived.map(({ partition }) => partition)).size).toBeGreaterThan(1);
  });

  it("writes CloudEvents in binary mode: data as value, attributes as headers", async () => {
    const sink = kafkaSink({ brokers: mock.url.split(","), topic: "binary", connect: { autocreateTopics: true } });
    const event = eventOf("run-7", 3, { traceparent: "00-1-2-01" });
    expect(await sink.send([event], context())).toEqual(["ok"]);
    await sink.close!();
    const [message] = await read("binary");
    expect(message!.key).toBe("run-7");
    expect(JSON.parse(message!.payload)).toEqual(event.data);
    const { data: _, ...attributes } = event;
    for (const [name, value] of Object.entries(attributes)) expect(attribute(message!, name)).toBe(String(value));
    expect(message!.headers).toContain("content-type");
  });

  it("repeats what it sends again: Kafka drops nothing", async () => {
    const sink = kafkaSink({ brokers: mock.url.split(","), topic: "twice", connect: { autocreateTopics: true } });
    await lane(sink, feedOf(1, 4));
    await lane(sink, feedOf(1, 4));
    await sink.close!();
    expect(await read("twice")).toHaveLength(8);
  });

  it("uses a producer of the program, and leaves it open", async () => {
    const bootstrapBrokers = mock.url.split(",");
    const producer = new Producer({
      clientId: "own",
      bootstrapBrokers,
      serializers: stringSerializers,
      autocreateTopics: true,
    });
    const sink = kafkaSink({ producer, topic: "own" });
    await sink.send([eventOf("run-1", 1)], context());
    await sink.close!();
    await sink.send([eventOf("run-1", 2)], context());
    await producer.close();
    expect(await read("own")).toHaveLength(2);
  });

  it("a broker that is away lets the event wait", async () => {
    const sink = kafkaSink({ brokers: ["127.0.0.1:1"], connect: { retries: 0, connectTimeout: 500 } });
    await expect(sink.send([eventOf("run-1", 1)], context())).rejects.toThrow();
    await sink.close!();
  });
});
