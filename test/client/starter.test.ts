import { expect, it, onTestFinished } from "vitest";
import { openRemote } from "../../src/client/store.ts";
import type { Transport } from "../../src/protocol/transport.ts";
import { giveTokens, tokenOf } from "../server/scene.ts";
import { stage } from "../server/stage.ts";

it("sends many runs of a starter in few requests, each with its own result", async () => {
  const { server, store: behind, close } = await stage({ credentials: "required" });
  onTestFinished(close);
  await giveTokens(behind, "acme");
  await behind.intake.putQueue("acme", "models", { counts: "running" });
  const paths: string[] = [];
  const exchange: Transport = (request) => {
    paths.push(`${request.method} ${request.url}`);
    return server.exchange(request);
  };
  const store = await openRemote("http://127.0.0.1:1", { exchange, token: tokenOf("acme", "starter") });
  onTestFinished(() => store.close());
  paths.length = 0;
  const specs = Array.from({ length: 300 }, (_, k) => ({
    ...{
      id: `r-${k}`,
      workflow: "w",
      input: { at: new Date(k) },
      queue: k === 7 ? "none" : "models",
      key: `k-${k % 3}`,
    },
    ...(k > 297 && { unique: { key: "one", onConflict: "join" as const } }),
  }));
  const results = await store.intake.createRuns("acme", specs);
  expect(new Set(paths)).toEqual(new Set(["POST /v1/runs/batch"]));
  expect(paths.length).toBeLessThan(10);
  expect(results.map((result) => (result.ok ? result.fresh : result.error.code))).toEqual([
    ...specs.map(({ id }) => (id === "r-7" ? "TAPE_QUEUE_UNKNOWN" : id !== "r-299")),
  ]);
  expect(results[299]).toMatchObject({ ok: true, fresh: false, run: "r-298" });
  expect((await behind.read.queues("acme"))[0]).toMatchObject({ waiting: 298, keys: 3 });
  const [alone] = await store.intake.createRuns("acme", [{ id: "alone", workflow: "w", input: 1 }]);
  expect(alone).toMatchObject({ ok: true, fresh: true });
  expect(paths.at(-1)).toBe("POST /v1/runs"); // one start has an idempotency key of its own
});
