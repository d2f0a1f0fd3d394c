import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { createClient } from "redis";
import { describe, expect, it } from "vitest";
import { startNats, startRedis } from "./servers/servers.ts";

describe("the servers of these tests", () => {
  it("a Redis that is killed keeps what it has confirmed", async () => {
    const server = await startRedis();
    const client = await createClient({ url: server.url })
      .on("error", () => {})
      .connect();
    try {
      await client.xAdd("kept", "1-0", { a: "b" });
      await server.kill();
      await server.start();
      expect(await client.xLen("kept")).toBe(1);
    } finally {
      client.destroy();
      await server.stop();
    }
  });

  it("a NATS that is killed keeps what it has confirmed", async () => {
    const server = await startNats();
    const connection = await connect({ servers: server.url, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
    try {
      const manager = await jetstreamManager(connection, { timeout: 500 });
      await manager.streams.add({ name: "kept", subjects: ["kept.>"] });
      await jetstream(connection).publish("kept.a", "b");
      await server.kill();
      await server.start();
      await expect
        .poll(async () => (await manager.streams.info("kept").catch(() => undefined))?.state.messages)
        .toBe(1);
    } finally {
      await connection.close();
      await server.stop();
    }
  });

  it("a server that cannot be had is an error, and nothing stays half unpacked", () => {
    const cache = mkdtempSync(join(tmpdir(), "tape-servers-"));
    const source = `import { findProgram } from "./servers/programs.ts"; findProgram("redis-server");`;
    const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", source], {
      ...{ cwd: import.meta.dirname, encoding: "utf8" },
      env: { PATH: cache, TAPE_TEST_SERVERS: cache },
    });
    expect(status).toBe(1);
    expect(stderr).toContain("apt-get cannot be run");
    expect(readdirSync(cache)).toEqual([]);
    rmSync(cache, { recursive: true });
  });
});
