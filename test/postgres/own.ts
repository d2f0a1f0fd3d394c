import { afterAll, beforeAll } from "vitest";
import { startPostgres } from "./server.ts";

/**
 * A server for this file alone. The feed waits for every open transaction of its server, other databases included: its
 * readers must not share a server with tests that hold transactions open.
 */
export function ownPostgres(major: 14 | 18): () => string {
  let server: Awaited<ReturnType<typeof startPostgres>> | undefined;
  beforeAll(async () => {
    server = await startPostgres({ major, settings: {} });
  });
  afterAll(async () => {
    await server?.stop();
  });
  return () => {
    if (server === undefined) throw new Error("the server starts with the file's first test");
    return server.url;
  };
}
