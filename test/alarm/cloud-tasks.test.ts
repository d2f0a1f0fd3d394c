import { describe, expect, it } from "vitest";
import type { Alarm } from "../../src/alarm/alarms.ts";
import { type CloudTasksOptions, cloudTasksAlarms } from "../../src/alarm/cloud-tasks.ts";
import { FakeCloudTasks, type FakeCloudTasksOptions, type TaskCall } from "../../testkit/kit/fake-cloud-tasks.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { queue } from "./deployment.ts";

const url = "https://app.example/sweep";

function stage(more: Partial<FakeCloudTasksOptions> = {}, options: Partial<CloudTasksOptions> = {}) {
  const time = new VirtualTime();
  const calls: (TaskCall & { readonly at: number })[] = [];
  const answers: number[] = [];
  const dispatch = async (call: TaskCall): Promise<number> => {
    calls.push({ ...call, at: time.now });
    return answers.shift() ?? 204;
  };
  const tasks = new FakeCloudTasks({ clock: time, dispatch, ...more });
  const requests: { readonly url: string; readonly init: RequestInit }[] = [];
  const fetch = (to: string, init: RequestInit): Promise<Response> => {
    requests.push({ url: to, init });
    return tasks.fetch(to, init);
  };
  const alarms = cloudTasksAlarms({ queue, url, token: async () => "secret", clock: time, fetch, ...options });
  const set = (inMs: number, name = `d${inMs}`, tenant = "acme"): Promise<void> =>
    time.during(alarms.set({ tenant, inMs, name } satisfies Alarm));
  return { time, tasks, calls, answers, requests, set, alarms };
}

describe("Cloud Tasks alarms, against our fake of its API", () => {
  it("creates a task with a time, a deadline, a body and the token of the service account", async () => {
    const { time, requests, calls, set } = stage({}, { serviceAccount: "sweeper@p.iam", headers: { "x-secret": "s" } });
    await set(10_000);
    const [{ url: to, init } = { url: "", init: {} }] = requests;
    expect(to).toBe(`https://cloudtasks.googleapis.com/v2/${queue}/tasks`);
    expect(new Headers(init.headers).get("authorization")).toBe("Bearer secret");
    const { task } = JSON.parse(String(init.body));
    expect(task).toMatchObject({
      scheduleTime: new Date(time.wall() + 10_000).toISOString(),
      dispatchDeadline: "60s",
      httpRequest: { url, httpMethod: "POST", oidcToken: { serviceAccountEmail: "sweeper@p.iam", audience: url } },
    });
    expect(task.name).toMatch(new RegExp(`^${queue}/tasks/[0-9a-f]{8}-[0-9a-f]{16}-d10000$`));
    await time.elapse(10_000);
    expect(calls).toMatchObject([{ at: 10_000, url, body: '{"alarm":"d10000","tenant":"acme"}' }]);
    expect(calls[0]?.headers).toMatchObject({ "x-secret": "s", authorization: `Bearer fake sweeper@p.iam ${url}` });
  });

  it("a name that is pending is set already; another tenant's is another alarm", async () => {
    const { time, tasks, calls, set } = stage();
    await set(10_000, "b1");
    await set(10_000, "b1");
    await set(10_000, "b1", "other");
    expect([tasks.created, tasks.conflicts]).toEqual([2, 1]);
    await time.elapse(20_000);
    expect(calls).toHaveLength(2);
  });

  it("a name that was executed is not armed by a 409: the alarm gets another name, and fires", async () => {
    const { time, tasks, calls, set } = stage({ clockOffMs: 3_000 });
    await set(4_000, "d1"); // fires 3 s early by the machine's clock
    await time.elapse(1_500);
    expect(calls).toHaveLength(1);
    await set(2_500, "d1"); // the same moment again: it is over by the service's clock
    expect(tasks.conflicts).toBe(1);
    await time.elapse(2_500);
    expect(calls).toHaveLength(2);
  });

  it("a call that fails is repeated until it succeeds", async () => {
    const { time, calls, answers, tasks, set } = stage();
    answers.push(503, 500, 204);
    await set(1_000);
    await time.elapse(10_000);
    expect(calls.map(({ headers }) => headers["x-cloudtasks-taskretrycount"])).toEqual(["0", "1", "2"]);
    expect(tasks.pending).toEqual([]);
  });

  it("a lost response is an error, and the repeat finds the alarm set", async () => {
    const faults = ["lost" as const];
    const { tasks, set } = stage({ fault: () => faults.shift() });
    await expect(set(10_000)).rejects.toThrow("socket hang up");
    await set(10_000);
    expect([tasks.created, tasks.conflicts]).toEqual([1, 1]);
  });

  it("a refusal is an error with the service's answer", async () => {
    const { set } = stage({ fault: () => "refuse" });
    await expect(set(10_000)).rejects.toThrow("503");
    const { set: unknown } = stage({}, { endpoint: "https://other.example/v1" });
    await expect(unknown(10_000)).rejects.toThrow("404");
  });

  it("a service that does not answer is given up after four seconds", async () => {
    const fetch = (_: string, { signal }: RequestInit): Promise<Response> =>
      new Promise((_resolve, reject) => signal!.addEventListener("abort", () => reject(signal!.reason)));
    const { time, set } = stage({}, { fetch });
    await expect(set(10_000)).rejects.toThrow("no response within");
    expect(time.now).toBe(4_000);
  });

  it("clocks that differ by more than the margin are refused", async () => {
    for (const clockOffMs of [-60_000, -6_000, 6_000, 60_000]) {
      await expect(stage({ clockOffMs }).set(10_000), String(clockOffMs)).rejects.toThrow("differs");
    }
    for (const clockOffMs of [-3_900, 3_900]) await stage({ clockOffMs }).set(10_000);
  });

  it("the furthest alarm is accepted", async () => {
    const { set, alarms, tasks } = stage();
    await set(alarms.furthestMs);
    expect(tasks.created).toBe(1);
  });

  it("without a token the metadata server is asked, once until it expires", async () => {
    const fetchedAt: number[] = [];
    const time = new VirtualTime();
    const tasks = new FakeCloudTasks({ clock: time, dispatch: async () => 204 });
    const fetch = async (to: string, init: RequestInit): Promise<Response> => {
      if (!to.startsWith("http://metadata.google.internal/")) return tasks.fetch(to, init);
      fetchedAt.push(time.now);
      return Response.json({ access_token: "t", expires_in: 3_600 });
    };
    const alarms = cloudTasksAlarms({ queue, url, clock: time, fetch });
    for (let k = 0; k < 3; k++) await time.during(alarms.set({ tenant: "t", inMs: 1_000, name: `n${k}` }));
    expect(fetchedAt).toEqual([0]);
    await time.elapse(3_550_000);
    await time.during(alarms.set({ tenant: "t", inMs: 1_000, name: "n9" }));
    expect(fetchedAt).toHaveLength(2);
  });

  it("wrong options are refused before anything is sent", () => {
    const refused = { code: "TAPE_BAD_INPUT" };
    for (const wrong of [
      { queue: "tape" },
      { url: "app.example" },
      { dispatchDeadline: "5s" },
      { dispatchDeadline: "31m" },
      { colour: "red" },
    ]) {
      expect(() => cloudTasksAlarms({ queue, url, ...wrong } as CloudTasksOptions), JSON.stringify(wrong)).toThrow(
        expect.objectContaining(refused),
      );
    }
  });
});
