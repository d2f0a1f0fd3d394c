import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { tenantOf } from "../../src/cli/reactors/place.ts";
import { loadConfig } from "../../src/config/load.ts";
import { openStore } from "../../src/host/open-store.ts";
import { serve } from "../../src/host/serve.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import { program, temporaryFolder } from "./stage.ts";

/** A server whose own tenant is `default`, and an admin's token of `acme` in the environment. */
async function scene() {
  const store = `sqlite:${join(await temporaryFolder(), "t.db")}`;
  const person = ["--by", "ada", "--reason", "drill"];
  const made = await program(
    "token",
    "create",
    "ci",
    "--role",
    "admin",
    ...person,
    "--tenant",
    "acme",
    "--store",
    store,
  );
  const token = made.stdout.split("\n")[0]!;
  await program("start", "w", "--input", "1", "--id", "r-1", "--tenant", "acme", "--store", store);
  const serving = await serve({ store, port: 0, credentials: "required", log: "silent" });
  onTestFinished(() => void serving.stop(100));
  vi.stubEnv("TAPE_TOKEN", token);
  onTestFinished(() => void vi.unstubAllEnvs());
  const tape = (...args: string[]) => program(...args, "--store", serving.url);
  return { tape, person, url: serving.url };
}

it("through a server the token says whose runs they are, whatever tape.yaml says", async () => {
  const { tape } = await scene();
  expect(await tape("runs")).toMatchObject({ code: 0, stdout: expect.stringContaining("r-1") });
  expect(await tape("runs", "--tenant", "acme")).toMatchObject({ code: 0, stdout: expect.stringContaining("r-1") });
  const other = await tape("runs", "--tenant", "globex");
  expect(other).toMatchObject({ code: 1, stdout: "" });
  expect(other.stderr).toMatch(/TAPE_BAD_CONFIG: .*token is of tenant acme, not of globex/);
});

it("tokens are made, listed and revoked through it", async () => {
  const { tape, person } = await scene();
  const made = await tape(
    "token",
    "create",
    "reports",
    "--role",
    "reader",
    "--expires",
    "30d",
    ...person,
    "-o",
    "json",
  );
  expect(made).toMatchObject({ code: 0, stderr: "" });
  const { id, token, tenant } = JSON.parse(made.stdout) as { id: string; token: string; tenant: string };
  expect([token.startsWith(`${id}.`), tenant]).toEqual([true, "acme"]);
  expect((await tape("token", "ls")).stdout).toMatch(new RegExp(`${id} +reports +reader`));
  expect(await tape("token", "revoke", id, ...person)).toMatchObject({ code: 0 });
});

it("reactors and programs that name another tenant than their token's are refused, instead of finding nothing", async () => {
  const { url } = await scene();
  const store = await openStore(url);
  onTestFinished(() => store.close());
  const configured = (env: Record<string, string>) => loadConfig({ cwd: "/", env });
  expect(tenantOf(store, configured({}))).toBe("acme");
  expect(tenantOf(store, configured({ TAPE_TENANT: "acme" }))).toBe("acme");
  expect(() => tenantOf(store, configured({ TAPE_TENANT: "globex" }))).toThrow(/TAPE_BAD_CONFIG.*not of globex/);
  await expect(Tape.open({ store, tenant: "globex", runner: createRunner({ workflows: [] }) })).rejects.toMatchObject({
    code: "TAPE_BAD_INPUT",
  });
});
