import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import type { TapeEvent } from "../../src/events/event.ts";
import { webhookSink } from "../../src/events/sinks/webhook.ts";
import { webhookSignature } from "../../src/push/verify/webhook.ts";
import { calm, type Stage, setStage, tenant } from "../host/stage.ts";
import { finished } from "./world-sink.ts";

const secretOf = (byte: number): string => `whsec_${Buffer.alloc(32, byte).toString("base64")}`;
const [right, wrong] = [secretOf(1), secretOf(2)];

/** A receiver that checks signatures. Its ledger has what it took. */
async function receiver() {
  const ledger: TapeEvent[] = [];
  const verify = webhookSignature({ secrets: [right] });
  let refused = 0;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const headers = new Headers(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    const verdict = await verify.check(headers, body);
    if (verdict.ok) ledger.push(JSON.parse(body.toString()) as TapeEvent);
    else refused++;
    response.writeHead(verdict.ok ? 204 : verdict.status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, ledger, refusals: () => refused };
}

/** Lets virtual time pass, and real requests with it. */
async function until(stage: Stage, holds: () => boolean): Promise<void> {
  for (let k = 0; k < 2_000 && !holds(); k++) {
    await stage.clock.elapse(200);
    await calm();
  }
  expect(holds()).toBe(true);
}

it("a wrong secret blocks a webhook sink and is reported; with the right one, nothing is lost", async () => {
  const stage = await setStage();
  const app = await stage.app("a");
  const { url, ledger, refusals } = await receiver();
  const start = (secret: string) =>
    app.fanouts.start({
      ...{ name: "billing", from: "start", lanes: 1 },
      sink: webhookSink({ url, secrets: [secret], allow: ["127.0.0.1"] }),
    });
  const blocked = start(wrong);
  const runs: string[] = [];
  for (let k = 0; k < 6; k++) runs.push(await finished(stage.store));
  await until(stage, () => refusals() >= 6); // more often than an event is refused before it becomes a dead letter
  expect(blocked.view()).toMatchObject({ delivered: 0, deadLetters: 0, lastError: expect.stringContaining("401") });
  expect(blocked.view().lagMs).toBeGreaterThan(5_000); // which the alert of late sinks watches
  expect(stage.lines.filter(({ level, event }) => level === "warn" && event === "sink.retrying")).not.toEqual([]);
  expect(inspect(stage.lines, { depth: 9 })).not.toContain(wrong.slice(6, 20));
  const stopped = blocked.stop();
  await stage.clock.elapse(10_000); // the time to drain
  await stopped;
  expect(ledger).toEqual([]);
  expect(await stage.store.read.deadLetters(tenant, "billing")).toEqual([]);
  const mended = start(right);
  await until(stage, () => ledger.length >= 12);
  expect(ledger).toHaveLength(12);
  for (const run of runs) {
    const kinds = ledger.flatMap(({ subject, type }) => (subject === run ? [type] : []));
    expect(kinds).toEqual(["dev.tape.run.created", "dev.tape.run.ended"]);
  }
  await mended.stop();
});
