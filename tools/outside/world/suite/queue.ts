import { openStore } from "durable-tape";
import type { WorldOptions } from "durable-tape/world";
import { expect, onTestFinished, vi } from "vitest";
import { queueName, type ReceivedMessage, route, serve } from "./handler.ts";
import { type Cases, newTenant, open, type Place } from "./places.ts";
import { newRunId, payload } from "./runs.ts";

type Answer = (received: ReceivedMessage) => Promise<undefined | { timeoutSeconds: number }>;
const wait = { timeout: 50_000, interval: 20 };

/** A world that delivers to a server of its own. `through` stands before the handlers, as a proxy would. */
async function delivering(
  place: Place,
  answer: Answer = async () => undefined,
  { through = (request, handler) => handler(request), starts = true, ...options }: DeliveringOptions = {},
) {
  const received: (ReceivedMessage & { at: number })[] = [];
  let handler: (request: Request) => Promise<Response>;
  const server = await serve((request) => through(request, handler));
  onTestFinished(() => server.close());
  const { tenant = newTenant() } = options;
  const world = open(place, tenant, { baseUrl: server.url, ...options });
  handler = route(world, async (one) => {
    received.push({ ...one, at: Date.now() });
    return answer(one);
  });
  if (starts) await world.start();
  return { world, tenant, received, url: `${server.url}/.well-known/workflow/v1/flow` };
}
type DeliveringOptions = WorldOptions & { readonly through?: Through; readonly starts?: boolean };
type Through = (request: Request, handler: (request: Request) => Promise<Response>) => Promise<Response>;

/** Messages and their deliveries. */
export function queue({ it, place }: Cases): void {
  it("arrive as they were sent, under the id that the sender received", async () => {
    const { world, received } = await delivering(place);
    const runInput = { input: payload("\0in"), deploymentId: "dpl", workflowName: "pay", specVersion: 5 };
    const message = { runId: newRunId(), requestedAt: new Date(0), runInput };
    const { messageId } = await world.queue(queueName, message);
    await vi.waitFor(() => expect(received).toMatchObject([{ message, attempt: 1, messageId }]), wait);
  });

  it("are one message while one with their key is not done", async () => {
    const { promise: finished, resolve: finish } = Promise.withResolvers<undefined>();
    const { world, received } = await delivering(place, () => finished);
    const send = (n: number, idempotencyKey: string) =>
      world.queue(queueName, { runId: `run-${n}` }, { idempotencyKey });
    const first = await send(1, "key");
    await vi.waitFor(() => expect(received).toHaveLength(1), wait);
    const [again, other] = [await send(2, "key"), await send(3, "other")];
    expect(again).toEqual(first);
    expect(other).not.toEqual(first);
    await vi.waitFor(() => expect(received).toHaveLength(2), wait);
    finish(undefined);
    // The key is free once the message is done.
    await vi.waitFor(async () => expect(await send(4, "key")).not.toEqual(first), wait);
    await vi.waitFor(() => expect(received).toHaveLength(3), wait);
    expect(received.map(({ message }) => (message as { runId: string }).runId)).toEqual(["run-1", "run-3", "run-4"]);
  });

  it("are delivered after their delay, not before", async () => {
    const { world, received } = await delivering(place);
    const sentAt = Date.now();
    await world.queue(queueName, { runId: "late" }, { delaySeconds: 1.5 });
    await world.queue(queueName, { runId: "soon" });
    await vi.waitFor(() => expect(received).toHaveLength(2), wait);
    expect(received.map(({ message }) => (message as { runId: string }).runId)).toEqual(["soon", "late"]);
    expect(received[1]!.at - sentAt).toBeGreaterThanOrEqual(1_500);
  });

  it("are delivered again, with the next number, until a handler is done with them", async () => {
    const { world, received } = await delivering(place, async ({ attempt }) => {
      if (attempt === 1) throw new Error("not now");
      if (attempt === 2) return { timeoutSeconds: 1 };
    });
    const { messageId } = await world.queue(queueName, { runId: "run" });
    await vi.waitFor(() => expect(received).toHaveLength(3), wait);
    expect(received.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(received.every((one) => one.messageId === messageId)).toBe(true);
    expect(received[2]!.at - received[1]!.at).toBeGreaterThanOrEqual(1_000);
  });

  it("are not done because something else has answered in place of a handler", async () => {
    let calls = 0;
    const answers = [
      () => new Response("<html>", { status: 200, headers: { "content-type": "text/html" } }),
      () => Response.json({ status: "fine" }),
      () => new Response(null, { status: 502 }),
    ];
    const through: Through = async (request, handler) => answers[calls++]?.() ?? handler(request);
    const { world, received } = await delivering(place, undefined, { through });
    await world.queue(queueName, { runId: "run" });
    await vi.waitFor(() => expect(received).toHaveLength(1), wait);
    expect([calls, received[0]!.attempt]).toEqual([4, 1]);
  });

  it("stay in their world if another one shares its store", async () => {
    const one = await delivering(place, undefined, { starts: false });
    const other = await delivering(place, undefined, { prefix: "other", tenant: one.tenant });
    await one.world.queue(queueName, { runId: "one" });
    await other.world.queue(queueName, { runId: "other" });
    await vi.waitFor(() => expect(other.received).toHaveLength(1), wait);
    await one.world.start();
    await vi.waitFor(() => expect(one.received).toMatchObject([{ message: { runId: "one" } }]), wait);
    expect(other.received).toMatchObject([{ message: { runId: "other" } }]);
  });

  it("are refused unless a process of the same world has signed them", async () => {
    const requests: Request[] = [];
    const through: Through = async (request, handler) => {
      requests.push(request.clone() as Request);
      return handler(request);
    };
    const { world, received, url } = await delivering(place, undefined, { through });
    await world.queue(queueName, { runId: "run" });
    await vi.waitFor(() => expect(received).toHaveLength(1), wait);
    const [signed] = requests;
    const body = await signed!.text();
    const headers = Object.fromEntries(signed!.headers);
    delete headers["content-length"];
    const post = async (more: Record<string, string>, text = body) =>
      (await fetch(url, { method: "POST", headers: { ...headers, connection: "close", ...more }, body: text })).status;
    expect(await post({ "x-tape-signature": "" })).toBe(401);
    expect(await post({ "x-tape-message": "msg_other" })).toBe(401);
    expect(await post({ "x-tape-attempt": "2" })).toBe(401);
    expect(await post({}, body.replace("run", "foe"))).toBe(401);
    expect(await post({ "x-tape-attempt": "x" })).toBe(400);
    expect(await post({}, "x".repeat(8 * 1024 * 1024 + 1))).toBe(413);
    expect(received).toHaveLength(1);
    expect(await post({})).toBe(200);
    expect(received).toHaveLength(2);
  });

  it("are refused before they are stored if they are out of bounds", async () => {
    const { world, tenant, received } = await delivering(place);
    const bad = { code: "TAPE_BAD_INPUT" };
    const message = { runId: "run" };
    await expect(world.queue("other", message)).rejects.toMatchObject(bad);
    await expect(world.queue(queueName, { hello: 1 } as never)).rejects.toMatchObject(bad);
    await expect(world.queue(queueName, message, { delaySeconds: -1 })).rejects.toMatchObject(bad);
    await expect(world.queue(queueName, message, { delaySeconds: Number.NaN })).rejects.toMatchObject(bad);
    await expect(world.queue(queueName, message, { headers: { "a b": "c" } })).rejects.toMatchObject(bad);
    await expect(world.queue(queueName, message, { headers: { a: "c\r\nd: e" } })).rejects.toMatchObject(bad);
    await expect(world.queue(queueName, message, { idempotencyKey: "k".repeat(513) })).rejects.toMatchObject(bad);
    const runInput = { input: new Uint8Array(7 * 1024 * 1024), deploymentId: "d", workflowName: "w", specVersion: 5 };
    await expect(world.queue(queueName, { runId: "run", runInput })).rejects.toMatchObject(bad);
    await world.queue(queueName, message, { headers: { "X-Tape-Attempt": "9", "x-mine": "yes" } });
    await vi.waitFor(() => expect(received).toMatchObject([{ attempt: 1 }]), wait);
    const store = await openStore(place.url());
    onTestFinished(() => store.close());
    expect(await store.read.runs(tenant)).toHaveLength(1);
  });
}
