import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningServer, serve } from "../../src/host/serve.ts";
import { routes } from "../../src/protocol/contract.ts";
import { roles } from "../../src/protocol/route.ts";
import { ask, bootstrap, stage } from "./stage.ts";

const run = promisify(execFile);
const root = resolve(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const serverPage = read("docs/server.md");
const securityPage = read("docs/security.md");

/** A curl command and what it must answer, at least. */
const examples = [serverPage, securityPage].flatMap((page) =>
  [...page.matchAll(/^```sh\n(curl [\s\S]*?)^```\n\n^```json\n([\s\S]*?)^```/gm)].map(([, command, answer]) => ({
    command: command!,
    answer: JSON.parse(answer!) as Record<string, unknown>,
  })),
);

const section = (page: string, heading: string): string => page.split(`\n## ${heading}\n`)[1]!.split("\n## ")[0]!;
const rows = (text: string): string[][] =>
  [...text.matchAll(/^\| (`.*) \|$/gm)].map(([, row]) =>
    row!.split(" | ").map((cell) => cell.replaceAll("`", "").trim()),
  );

describe("curl examples of the docs", () => {
  let serving: RunningServer;
  beforeAll(async () => {
    serving = await serve({ store: "memory:", port: 0, credentials: "required", bootstrapToken: bootstrap });
  });
  afterAll(() => serving.stop(1_000));

  it("each have a response beside them", () => {
    const commands = [serverPage, securityPage].flatMap((page) => [...page.matchAll(/^curl /gm)]);
    expect(examples).toHaveLength(commands.length);
    expect(commands.length).toBeGreaterThan(10);
  });

  for (const { command, answer } of examples) {
    it(command.replaceAll(/\s+/g, " ").slice(0, 100), async () => {
      const text = command.replaceAll("http://127.0.0.1:7878", serving.url);
      const { stdout } = await run("bash", ["-c", text], { env: { ...process.env, TAPE_TOKEN: bootstrap } });
      expect(JSON.parse(stdout)).toMatchObject(answer);
    });
  }
});

describe("docs and code agree on", () => {
  it("routes and their roles", () => {
    const inContract = routes.map(({ name, method, path, role }) => [
      ...[name, `${method} ${path}`, role === "open" ? "none" : role],
    ]);
    expect(rows(section(securityPage, "Calls"))).toEqual(inContract);
    expect(rows(section(securityPage, "Roles")).map(([role]) => role)).toEqual([...roles]);
  });

  it("metrics", async () => {
    const { server, close } = await stage();
    const text = String((await ask(server.exchange, "GET", "/metrics")).json);
    await close();
    const kept = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!);
    const described = rows(section(serverPage, "Health and metrics")).flatMap(([name]) =>
      name!.startsWith("tape_") ? [name!] : [],
    );
    expect(described.toSorted()).toEqual(kept.toSorted());
  });

  it("log events", () => {
    const sources = readdirSync(join(root, "src/server"), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => read(join("src/server", file)));
    const logged = [...sources, read("src/cli/commands/serve.ts")].flatMap((text) =>
      [...text.matchAll(/"(server\.[a-z_]+)"/g)].map(([, event]) => event!),
    );
    const described = [...section(serverPage, "Health and metrics").matchAll(/`(server\.[a-z_]+)`/g)].map(
      ([, event]) => event!,
    );
    expect([...new Set(described)].toSorted()).toEqual([...new Set(logged)].toSorted());
  });
});
