// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of tape.yaml
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { writeFolder } from "../../src/deploy/folder.ts";
import type { Target } from "../../src/deploy/plan.ts";
import { plainEnv } from "../cli/plain-env.ts";
import { library, project, Sidecar } from "../cli/sidecar.ts";
import { carryOut, filesIn, recordingPrograms } from "./acting.ts";
import { rendered, sample } from "./sample.ts";

const root = resolve(import.meta.dirname, "../..");

/** The folder of a target, written to disk. */
function folderOf(target: Target, yaml: string = sample): string {
  const out = join(project({}), "deploy", target);
  writeFolder(out, target, rendered(target, yaml).files);
  return out;
}

describe("Dockerfile, acted out in a folder", () => {
  it("installs the program without secrets, and its command drains on SIGTERM", async () => {
    const place = project({});
    const link = relative(join(place, "build", "app"), root);
    const dependencies = { "durable-tape": `file:${link}` };
    const lock = {
      ...{ name: "shop", lockfileVersion: 3, requires: true },
      packages: {
        "": { name: "shop", dependencies },
        [link]: { name: "durable-tape" },
        "node_modules/durable-tape": { resolved: link, link: true },
      },
    };
    const context = project({
      "package.json": JSON.stringify({ name: "shop", type: "module", private: true, dependencies }),
      "package-lock.json": JSON.stringify(lock),
      "tape.yaml": 'agent: { runner_factory: "./app/agent.ts#buildRunner" }\n',
      "app/agent.ts": `import { createRunner } from ${library};\nexport const buildRunner = () => createRunner({ workflows: [] });\n`,
      ".env": "DB_PASSWORD=hunter2\n",
      "app/tls.key": "secret\n",
      ".tape/tape.db": "state\n",
      "node_modules/left/over.js": "",
      "deploy/kubernetes/Dockerfile": "",
    });
    const { text } = rendered("kubernetes");
    const image = carryOut(text("Dockerfile"), text("Dockerfile.dockerignore"), context, place);
    const files = filesIn(join(image.root, "app")).filter((file) => !file.startsWith("node_modules"));
    expect(files).toEqual(["app/agent.ts", "package-lock.json", "package.json", "tape.yaml"]);
    expect([image.user, image.env.NODE_ENV, image.workdir]).toEqual(["node", "production", "/app"]);
    const [node, file, ...args] = image.command;
    expect([node, file]).toEqual(["node", "node_modules/durable-tape/bin/tape-reactors.js"]);
    const cwd = join(image.root, image.workdir);
    expect(readFileSync(join(cwd, file!), "utf8")).toContain("cli/reactors/main");
    const sidecar = new Sidecar(cwd, args, { ...image.env, TAPE_STORE_URL: `sqlite:${join(place, "tape.db")}` });
    await sidecar.until(() => sidecar.logged("reactors.started"));
    expect(await sidecar.stop("SIGTERM")).toBe(0);
    expect(sidecar.logged("reactors.stopping")).toMatchObject({ signal: "SIGTERM" });
    expect(sidecar.logged("reactors.stopped")).toBeDefined();
  });
});

describe("deploy.sh, with programs that only record their calls", () => {
  function deployed(
    target: Target,
    names: readonly string[],
    env: Readonly<Record<string, string>> = {},
    yaml = sample,
  ) {
    const out = folderOf(target, yaml);
    const programs = recordingPrograms(join(out, "..", "recording"), names);
    const options = {
      encoding: "utf8",
      env: { ...plainEnv, PATH: `${programs.path}:${process.env.PATH}`, ...env },
    } as const;
    return { ...spawnSync("bash", [join(out, "deploy.sh")], options), calls: programs.calls(), seen: programs.path };
  }

  it("kubernetes: builds, checks the secrets, migrates, starts, and waits for the probes", () => {
    const { status, calls, stderr, seen } = deployed("kubernetes", ["docker", "kubectl"], { GIT_SHA: "abc123" });
    expect([status, stderr]).toEqual([0, ""]);
    const image = "europe-docker.pkg.dev/p/tape/app:abc123";
    const steps = calls.map((call) => call.replace(/\S+\/(tape-[\w-]+\.yaml)/, "$1"));
    expect(steps.slice(0, 9)).toEqual([
      `docker build --file Dockerfile --tag ${image} ../..`,
      `docker push ${image}`,
      "kubectl --namespace shop get secret tape-db-password",
      "kubectl --namespace shop get secret tape-admin",
      "kubectl --namespace shop get secret tape-hook",
      "kubectl --namespace shop delete job tape-migrate --ignore-not-found --wait",
      "kubectl --namespace shop apply --filename tape-migrate.yaml",
      "kubectl --namespace shop wait --for=condition=complete --timeout=15m job/tape-migrate",
      "kubectl --namespace shop apply --filename tape-server.yaml",
    ]);
    expect(steps.at(-1)).toBe("kubectl --namespace shop rollout status deployment/tape-sink-billing-eu --timeout=5m");
    const applied = readFileSync(join(seen, "tape-reactor-outbox.yaml"), "utf8");
    expect(applied).toContain(`image: ${image}\n`);
    expect(applied).not.toContain("GIT_SHA");
  });

  it.each([
    ["kubernetes", "registry.example/p/tape/app:1"],
    ["gcp", "registry.example/p/tape/app:1"],
    ["gcp", "registry.example/p/app:${TAG:-latest}"],
  ] as const)("%s: the image %s is applied as it is written", (target, written) => {
    const yaml = sample.replace(/image: .*/, `image: "${written}"`);
    const programs = target === "gcp" ? ["docker", "gcloud"] : ["docker", "kubectl"];
    const { status, calls, stderr, seen } = deployed(target, programs, {}, yaml);
    expect([status, stderr]).toEqual([0, ""]);
    const image = written.replace("${TAG:-latest}", "latest");
    expect(calls[1]).toBe(`docker push ${image}`);
    const applied = readFileSync(join(seen, "tape-reactor-outbox.yaml"), "utf8");
    expect([...applied.matchAll(/image: "?([^"\n]+)/g)].map(([, name]) => name)).toEqual([image]);
  });

  it("stops before anything happens without the variable of the image", () => {
    const { status, calls, stderr } = deployed("kubernetes", ["docker", "kubectl"]);
    expect([status, calls]).toEqual([1, []]);
    expect(stderr).toContain("set GIT_SHA, a part of the image in tape.yaml");
  });

  it("stops at the first command that fails", () => {
    const out = folderOf("kubernetes");
    const programs = recordingPrograms(join(out, "..", "recording"), ["docker", "kubectl"]);
    writeFileSync(join(programs.path, "docker"), "#!/bin/sh\nexit 7\n");
    const env = { ...plainEnv, GIT_SHA: "x", PATH: `${programs.path}:${process.env.PATH}` };
    expect(spawnSync("bash", [join(out, "deploy.sh")], { env }).status).toBe(7);
    expect(programs.calls()).toEqual([]);
  });

  it("gcp: service accounts first, then the job, then a service for each reactor", () => {
    const { status, calls, stderr, seen } = deployed("gcp", ["docker", "gcloud"], { GIT_SHA: "abc123" });
    expect([status, stderr]).toEqual([0, ""]);
    const where = "--project my-project --region europe-west1";
    const named = calls.map((call) => call.replace(/\S+\/(tape-[\w-]+\.yaml)/, "$1"));
    const order = [
      "gcloud iam service-accounts describe tape-migrate@my-project.iam.gserviceaccount.com --project my-project",
      `gcloud run jobs replace tape-migrate.yaml ${where}`,
      `gcloud run jobs execute tape-migrate --wait ${where}`,
      `gcloud run services replace tape-server.yaml ${where}`,
      `gcloud run services replace tape-reactor-outbox.yaml ${where}`,
      `gcloud run services describe tape-server ${where} --format=value(status.conditions[0].status)`,
    ].map((call) => named.indexOf(call));
    expect(order).not.toContain(-1);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(named.filter((call) => call.includes("secrets add-iam-policy-binding"))).toHaveLength(9 * 3);
    expect(readFileSync(join(seen, "tape-server.yaml"), "utf8")).toContain("tape/app:abc123\n");
  });

  it("compose: builds, starts and waits for the health checks", () => {
    const { status, calls } = deployed("compose", ["docker"]);
    expect([status, calls]).toEqual([
      0,
      [
        "docker compose --file compose.yaml build",
        "docker compose --file compose.yaml up --detach --wait",
        "docker compose --file compose.yaml ps --format table",
      ],
    ]);
  });
});

describe("run.sh of systemd", () => {
  it("passes credentials on as variables, and becomes the program", () => {
    const out = folderOf("systemd");
    const credentials = join(out, "credentials");
    mkdirSync(credentials);
    for (const name of ["tape-db-password", "tape-admin", "tape-hook"])
      writeFileSync(join(credentials, name), `${name} $x`);
    const print = "console.log(JSON.stringify([process.env.DB_PASSWORD, process.env.HOOK_SECRET]))";
    const env = { ...plainEnv, CREDENTIALS_DIRECTORY: credentials };
    const { stdout } = spawnSync(join(out, "run.sh"), [process.execPath, "--eval", print], { env, encoding: "utf8" });
    expect(JSON.parse(stdout)).toEqual(["tape-db-password $x", "tape-hook $x"]);
    expect(
      spawnSync(join(out, "run.sh"), ["true"], { env: { ...env, CREDENTIALS_DIRECTORY: "/nowhere" } }).status,
    ).not.toBe(0);
  });
});
