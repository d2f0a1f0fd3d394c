import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { cloudTasksAlarms } from "../../src/alarm/cloud-tasks.ts";
import { systemClock } from "../../src/base/clock.ts";
import { Tape } from "../../src/host/tape.ts";
import { pushHandler } from "../../src/push/handler.ts";
import { unverified } from "../../src/push/verify/secret.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { FakeCloudTasks, type TaskCall } from "../../testkit/kit/fake-cloud-tasks.ts";
import { library, project, Sidecar } from "../cli/sidecar.ts";
import { queue } from "./deployment.ts";

/** Our fake of Cloud Tasks, and of the metadata server, behind a port. */
async function cloud(dispatch: (call: TaskCall) => Promise<number>) {
  const tasks = new FakeCloudTasks({ clock: systemClock, dispatch });
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    if (request.url!.startsWith("/computeMetadata/")) {
      return void response.end(JSON.stringify({ access_token: "machine", expires_in: 3_600 }));
    }
    const headers = { authorization: String(request.headers.authorization) };
    const answer = await tasks.fetch(`http://fake${request.url}`, { method: "POST", body, headers });
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { tasks, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const nap = workflow("nap", async (tape, ms: number) => {
  await tape.sleep(ms);
  return "rested";
});

describe("timers with mode: alarms in tape.yaml", () => {
  const agent = `import { createRunner, workflow } from ${library};
const nap = workflow("nap", async (tape, ms) => { await tape.sleep(ms); return "rested"; });
export const buildRunner = () => createRunner({ workflows: [nap] });
`;

  it("tape-reactors drives the run, and an alarm that it has set fires its timer", async () => {
    const swept: number[] = [];
    let sweep: (call: TaskCall) => Promise<number> = async () => 503;
    const { tasks, endpoint } = await cloud((call) => sweep(call));
    const url = "https://app.example/sweep";
    const yaml = `agent: { runner_factory: "./agent.ts#buildRunner" }
tape:
  reactors: { timers: { mode: alarms } }
  push:
    alarms: { kind: cloud_tasks, queue: ${queue}, url: "${url}", endpoint: "${endpoint}", service_account: s@p.iam }
`;
    const folder = project({ "tape.yaml": yaml, "agent.ts": agent });
    const store = `sqlite:${join(folder, "tape.db")}`;
    const env = { TAPE_STORE_URL: store, GCE_METADATA_HOST: endpoint.replace("http://", "") };
    const reactors = new Sidecar(folder, [], env);
    await reactors.until(() => reactors.logged("reactors.started"));
    expect(reactors.logged("reactors.started")?.reactors).toEqual([
      ...["recovery", "reconciler", "outbox", "compensation"],
    ]);
    // The program that the alarms call: it runs nothing between requests.
    const alarms = cloudTasksAlarms({ queue, url, endpoint, token: async () => "t" });
    const runner = createRunner({ workflows: [nap] });
    await using app = await Tape.open({ store, runner, serverless: { alarms }, log: "silent" });
    const handler = pushHandler(app, { sweep: true, verify: unverified("a test"), log: () => {} });
    sweep = async ({ url: to, headers, body }) => {
      swept.push(Date.now());
      return (await handler(new Request(to, { method: "POST", headers, body }))).status;
    };
    // It sets no alarms, so only those of tape-reactors can wake the handler.
    await using starter = await Tape.open({ store, runner, work: false, log: "silent" });
    const from = Date.now();
    const run = await starter.start(nap, 1_500);
    expect(await run.result()).toBe("rested");
    expect(Date.now() - from).toBeGreaterThanOrEqual(1_500);
    expect(swept.length).toBeGreaterThanOrEqual(1);
    expect(Math.min(...swept) - from).toBeGreaterThanOrEqual(1_500); // the alarm of the timer, and not the one ahead of writes
    expect(tasks.created).toBeGreaterThanOrEqual(2);
    expect(await reactors.stop()).toBe(0);
  });
});
