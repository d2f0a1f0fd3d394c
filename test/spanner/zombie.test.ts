import { pathToFileURL } from "node:url";
import { beforeAll, type TestContext } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { type World, zombieCases } from "../processes/zombie.ts";
import { ownEmulator } from "./fixture.ts";

const admin = ownEmulator();

// The worker processes find the client as this one does.
beforeAll(() => {
  const client = new URL("client.ts", pathToFileURL(import.meta.filename));
  process.env.NODE_OPTIONS = `--import=${client.href}`;
});

async function onSpanner(test: TestContext): Promise<World> {
  const url = `${await admin().create()}?sessions=3&wait_ms=600000`;
  const store = await openStore(url);
  test.onTestFinished(() => store.close());
  return { url, store, ttlMs: store.transactionBoundMs + 200 };
}

zombieCases("Spanner's emulator", onSpanner);
