import { afterEach, expect, it } from "vitest";
import { ask, type Stage, stage } from "../server/stage.ts";

let current: Stage | undefined;
afterEach(() => current?.close());

it("starts a workflow with a name of the maximum length", async () => {
  current = await stage();
  const body = { id: "long", workflow: "w".repeat(512), input: 1 };
  const { status, json } = await ask(current.server.exchange, "POST", "/v1/runs", { body });
  expect({ status, json }).toMatchObject({ status: 200, json: { id: "long", fresh: true } });
  expect((json as { hint: string }).hint).toContain(body.workflow);
});
