import { createRunner, Tape } from "durable-tape";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scripted } from "../agents/durable.ts";
import { type AgentServer, handlerOf, type Kind, serve } from "../agents/serve.ts";
import { clientOf, type TransportName, transports } from "./clients.ts";
import { type Operation, operations } from "./operations.ts";
import { comparable } from "./plain.ts";

/** Every operation, over each transport, has the same result as with the SDK's own stores. */
export function comparedOn(name: string, storeUrl: () => Promise<string>, stop: () => Promise<unknown>): void {
  const servers = new Map<Kind, AgentServer>();
  let app: Tape;

  beforeAll(async () => {
    console.info = console.warn = console.error = () => {}; // the SDK writes a line for each refusal
    app = await Tape.open({ store: await storeUrl(), runner: createRunner({ workflows: [scripted] }), log: "silent" });
    for (const kind of ["sdk", "stores", "tape"] as const) {
      servers.set(kind, await serve((card) => handlerOf(kind, app, card)));
    }
  });
  afterAll(async () => {
    for (const { server } of servers.values()) server.close();
    await app.close();
    await stop();
  });

  const done = async (kind: Kind, transport: TransportName, operation: Operation): Promise<unknown> => {
    const { url } = servers.get(kind)!;
    const [ada, bob] = [await clientOf(url, transport), await clientOf(url, transport, "bob")];
    return comparable(await operation({ ada, bob }));
  };

  describe.each(transports)(`${name}, through the SDK's own client over %s`, (transport) => {
    it.each(Object.entries(operations))("%s", async (_, operation) => {
      const expected = await done("sdk", transport, operation);
      expect(await done("stores", transport, operation)).toEqual(expected);
      expect(await done("tape", transport, operation)).toEqual(expected);
    });
  });
}
