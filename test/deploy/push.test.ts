// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is the syntax of the file, not of a template
import { spawnSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { writeFolder } from "../../src/deploy/folder.ts";
import { plainEnv } from "../cli/plain-env.ts";
import { project } from "../cli/sidecar.ts";
import { recordingPrograms } from "./acting.ts";
import { problemWith } from "./models.ts";
import { type Document, rendered, sampleWith } from "./sample.ts";

const topic = "projects/bus-project/topics/tape-wakeups";
const queue = "projects/my-project/locations/europe-west3/queues/tape";
const handlers = sampleWith("push: { program: app/push.ts, within_s: 90.5, cpu: 500m, memory: 256Mi, max: 4 }");

/** Recovery and outbox behind handlers that Pub/Sub wakes, timers fired by alarms. */
const pushed = handlers
  .replace(
    "  reactors:\n    reap",
    `  push:
    waker: { kind: pubsub, topic: ${topic} }
    alarms: { kind: cloud_tasks, queue: ${queue}, url: "https://sweep.example/" }
  reactors:
    recovery: { mode: push }
    compensation: { mode: push }
    timers: { mode: alarms }
    reap`,
  )
  .replace("      timers: { max: 1 }\n", "");

const names = ["tape-reactor-recovery", "tape-reactor-compensation", "tape-sweep"];
const services = (yaml = pushed): Document[] =>
  rendered("gcp", yaml)
    .documents()
    .filter(({ kind }) => kind === "Service");
const annotationsOf = ({ spec }: Document): Record<string, string> =>
  (spec as { template: { metadata: { annotations: Record<string, string> } } }).template.metadata.annotations;
const podOf = ({ spec }: Document) =>
  (spec as { template: { spec: { timeoutSeconds: number; containers: Record<string, unknown>[] } } }).template.spec;

describe("handlers on Cloud Run", () => {
  it("have no instance while nothing is due; whatever polls has one at least", () => {
    const found = services();
    expect(found.map(({ metadata }) => metadata.name)).toEqual(expect.arrayContaining([...names, "tape-announcer"]));
    expect(found.map(({ metadata }) => metadata.name)).not.toContain("tape-reactor-timers");
    for (const service of found) {
      const scales = annotationsOf(service);
      const isHandler = names.includes(service.metadata.name);
      const min = Number(scales["autoscaling.knative.dev/minScale"]);
      const { name } = service.metadata;
      expect([name, isHandler ? min === 0 : min >= 1]).toEqual([name, true]);
      expect([name, scales["run.googleapis.com/cpu-throttling"]]).toEqual([name, String(isHandler)]);
    }
  });

  it("run the user's program with its reactor, and accept tokens of one account for themselves alone", () => {
    const recovery = services().find(({ metadata }) => metadata.name === "tape-reactor-recovery")!;
    const { timeoutSeconds, containers } = podOf(recovery);
    expect(timeoutSeconds).toBe(101); // more than within
    expect(containers[0]).toMatchObject({
      args: ["app/push.ts"],
      resources: { limits: { cpu: "500m", memory: "256Mi" } },
      env: expect.arrayContaining([
        { name: "TAPE_PUSH_REACTORS", value: "recovery" },
        { name: "TAPE_PUSH_AUDIENCE", value: "https://tape-reactor-recovery.tape-push" },
        { name: "TAPE_PUSH_EMAIL", value: "tape-push@my-project.iam.gserviceaccount.com" },
      ]),
    });
    const { annotations } = recovery.metadata as unknown as { annotations: Record<string, string> };
    expect(annotations).toEqual({
      "run.googleapis.com/ingress": "internal",
      "run.googleapis.com/custom-audiences": '["https://tape-reactor-recovery.tape-push"]',
    });
  });

  it("are valid by the published schema, and refused when they are mutated", () => {
    for (const service of services())
      expect([service.metadata.name, problemWith(service)]).toEqual([service.metadata.name, undefined]);
    const mutations: ((service: Document) => void)[] = [
      (service) => Object.assign(podOf(service), { timeoutSeconds: "101" }),
      (service) => Object.assign(podOf(service), { containers: {} }),
      (service) => Object.assign(podOf(service).containers[0]!, { ports: [{ containerPort: "8080" }] }),
      (service) => Object.assign(podOf(service).containers[0]!, { args: "app/push.ts" }),
      (service) => Object.assign(annotationsOf(service), { "autoscaling.knative.dev/minScale": 0 }),
    ];
    for (const [k, mutate] of mutations.entries()) {
      const service = services().find(({ metadata }) => metadata.name === "tape-sweep")!;
      mutate(service);
      expect([k, typeof problemWith(service)]).toEqual([k, "string"]);
    }
  });

  it("two renders are equal byte for byte", () => {
    expect(rendered("gcp", pushed).files).toEqual(rendered("gcp", pushed).files);
  });

  it("stay services where reactors are worker pools, and need a reactor and an instance", () => {
    const pools = rendered("gcp", pushed.replace("region:", "workers: pool, region:")).documents();
    const kindOf = (name: string) => pools.find(({ metadata }) => metadata.name === name)?.kind;
    expect([kindOf("tape-reactor-recovery"), kindOf("tape-announcer")]).toEqual(["Service", "WorkerPool"]);
    expect(() => rendered("gcp", handlers)).toThrow("no reactor has mode: push");
    expect(() => rendered("gcp", pushed.replace("max: 4", "max: 0"))).toThrow("tape.deploy.push.max: 0 is less than 1");
    const elsewhere = rendered("kubernetes", pushed).files.map(({ path }) => path);
    expect(elsewhere).toContain("tape-announcer.yaml");
    expect(elsewhere).not.toContain("tape-sweep.yaml");
  });
});

describe("deploy.sh of gcp, with a gcloud that only records its calls", () => {
  /** `fresh`: nothing exists yet, so every `describe` of a resource fails. */
  function deployed(fresh: boolean) {
    const out = join(project({}), "deploy", "gcp");
    writeFolder(out, "gcp", rendered("gcp", pushed).files);
    const programs = recordingPrograms(join(out, "..", "recording"), ["docker", "gcloud"]);
    appendFileSync(
      join(programs.path, "gcloud"),
      [
        "",
        'case "$*" in *"value(status.url)"*) echo "https://$4.run.example";;',
        fresh ? '*"run services describe"*) ;; *" describe "*) exit 1;;' : "",
        "esac",
        "",
      ].join("\n"),
    );
    const env = { ...plainEnv, GIT_SHA: "abc", PATH: `${programs.path}:${process.env.PATH}` };
    const { status, stderr } = spawnSync("bash", [join(out, "deploy.sh")], { env, encoding: "utf8" });
    expect([status, stderr]).toEqual([0, ""]);
    return programs.calls();
  }
  const push = "--push-auth-service-account tape-push@my-project.iam.gserviceaccount.com";

  it("creates topic, subscriptions with OIDC, queue and the daily sweep, after the services", () => {
    const calls = deployed(true);
    const order = [
      "gcloud iam service-accounts create tape-push --project my-project --display-name tape-push",
      "gcloud run services add-iam-policy-binding tape-sweep --region europe-west1 --project my-project --member serviceAccount:tape-push@my-project.iam.gserviceaccount.com --role roles/run.invoker",
      "gcloud pubsub topics create tape-wakeups --project bus-project",
      "gcloud pubsub topics add-iam-policy-binding tape-wakeups --project bus-project --member serviceAccount:tape-announcer@my-project.iam.gserviceaccount.com --role roles/pubsub.publisher",
      `gcloud pubsub subscriptions create tape-wake-recovery --project my-project --topic tape-wakeups --topic-project bus-project --ack-deadline 101 --message-retention-duration 10m --expiration-period never --message-filter attributes.reactor = "recovery" --push-endpoint https://tape-reactor-recovery.run.example/ ${push} --push-auth-token-audience https://tape-reactor-recovery.tape-push`,
      "gcloud tasks queues create tape --project my-project --location europe-west3 --max-attempts -1 --max-backoff 60s",
      "gcloud tasks queues add-iam-policy-binding tape --project my-project --location europe-west3 --member serviceAccount:tape-reactor-outbox@my-project.iam.gserviceaccount.com --role roles/cloudtasks.enqueuer",
      "gcloud scheduler jobs create http tape-sweep --project my-project --location europe-west1 --schedule 17 3 * * * --time-zone Etc/UTC --http-method post --oidc-service-account-email tape-push@my-project.iam.gserviceaccount.com --oidc-token-audience https://tape-sweep.tape-push --attempt-deadline 101s --max-retry-attempts 5 --uri https://tape-sweep.run.example/",
    ].map((call) => calls.indexOf(call));
    expect(order).not.toContain(-1);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    const replaced = calls.findLastIndex((call) => call.startsWith("gcloud run services replace"));
    expect(order[1]).toBeGreaterThan(replaced);
    // The account that only signs calls may read no secret, and a sweep has no wake-ups.
    expect(calls.filter((call) => call.includes("secretAccessor") && call.includes(":tape-push@"))).toEqual([]);
    expect(calls.filter((call) => call.includes("subscriptions create")).length).toBe(2);
    expect(calls.join("\n")).not.toContain("dead-letter");
  });

  it("creates nothing a second time, and points the subscriptions at the services of now", () => {
    const calls = deployed(false);
    expect(calls.filter((call) => / create /.test(call))).toEqual([]);
    expect(calls.filter((call) => call.includes("subscriptions modify-push-config tape-wake-"))).toHaveLength(2);
    expect(calls.filter((call) => call.includes("scheduler jobs update http tape-sweep"))).toHaveLength(1);
  });

  it("without a topic and a queue there is nothing to create", () => {
    const webhooks = pushed
      .replace(`kind: pubsub, topic: ${topic}`, 'url: "https://push.example"')
      .replace("timers: { mode: alarms }", "timers: {}");
    const script = rendered("gcp", webhooks).text("deploy.sh");
    expect(script).not.toMatch(/pubsub|gcloud tasks|scheduler/);
    expect(script).toContain("run.invoker");
  });
});
