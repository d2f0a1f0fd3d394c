import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { tenantOf } from "../../src/cli/store-settings.ts";
import { loadConfig } from "../../src/config/load.ts";
import { openStore } from "../../src/host/open-store.ts";
import { serve } from "../../src/host/serve.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import { program, temporaryFolder } from "./stage.ts";

/** A server of tenant `default`, and an admin token of tenant `acme` in the environment. */
async function scene() {
  const store = `sqlite:${join(await temporaryFolder(), "t.db")}`;
  const operator = ["--by", "ada", "--reason", "drill"];
  const created = await program(
    "token",
    "create",
    "ci",
    "--role",
    "admin",
    ...operator,
    "--tenant",
    "acme",
    "--store",
    store,
  );
  const token = created.stdout.split("\n")[0]!;
  await program("start", "w", "--input", "1", "--id", "r-1", "--tenant", "acme", "--store", store);
  const serving = await serve({ store, port: 0, credentials: "required", log: "silent" });
  onTestFinished(() => void serving.stop(100));
  vi.stubEnv("TAPE_TOKEN", token);
  onTestFinished(() => void vi.unstubAllEnvs());
  const tape = (...args: string[]) => program(...args, "--store", serving.url);
  return { tape, operator, url: serving.url };
}

it("uses the token's tenant through a server, regardless of tape.yaml", async () => {
  const { tape } = await scene();
  expect(await tape("runs")).toMatchObject({ code: 0, stdout: expect.stringContaining("r-1") });
  expect(await tape("runs", "--tenant", "acme")).toMatchObject({ code: 0, stdout: expect.stringContaining("r-1") });
  const other = await tape("runs", "--tenant", "globex");
  expect(other).toMatchObject({ code: 1, stdout: "" });
  expect(other.stderr).toMatch(/TAPE_BAD_CONFIG: .*token belongs to tenant acme, not globex/);
});

it("creates, lists and revokes tokens through a server", async () => {
  const { tape, operator } = await scene();
  const created = await tape(
    "token",
    "create",
    "reports",
    "--role",
    "reader",
    "--expires",
    "30d",
    ...operator,
    "-o",
    "json",
  );
  expect(created).toMatchObject({ code: 0, stderr: "" });
  const { id, token, tenant } = JSON.parse(created.stdout) as { id: string; token: string; tenant: string };
  expect([token.startsWith(`${id}.`), tenant]).toEqual([true, "acme"]);
  expect((await tape("token", "ls")).stdout).toMatch(new RegExp(`${id} +reports +reader`));
  expect(await tape("token", "revoke", id, ...operator)).toMatchObject({ code: 0 });
});

it("rejects a configured tenant that differs from the token's", async () => {
  const { url } = await scene();
  const store = await openStore(url);
  onTestFinished(() => store.close());
  const configured = (env: Record<string, string>) => loadConfig({ cwd: "/", env });
  expect(tenantOf(store, configured({}))).toBe("acme");
  expect(tenantOf(store, configured({ TAPE_TENANT: "acme" }))).toBe("acme");
  expect(() => tenantOf(store, configured({ TAPE_TENANT: "globex" }))).toThrow(/TAPE_BAD_CONFIG.*not globex/);
  await expect(Tape.open({ store, tenant: "globex", runner: createRunner({ workflows: [] }) })).rejects.toMatchObject({
    code: "TAPE_BAD_INPUT",
  });
});
