import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { giveTokens, tokenOf } from "../server/scene.ts";
import { ask, type Stage, stage } from "../server/stage.ts";

/** A starter forged the record of a call (`tape.call/…`) or changed the overview of all readers (`tape-dev/stage`). */
let current: Stage;
beforeEach(async () => {
  current = await stage({ credentials: "required", tenant: "home" });
  await giveTokens(current.store, "acme");
});
afterEach(() => current.close());

describe.each(["tape.call/invoice-17", "tape-dev/stage"])("the key %s", (key) => {
  const path = `/v1/values/${encodeURIComponent(key)}`;
  const put = (role: "starter" | "operator" | "worker" | "admin") =>
    ask(current.server.exchange, "PUT", path, {
      ...{ body: { value: { state: "DONE" }, when: "unconditional" }, token: tokenOf("acme", role) },
    });

  it("can be written and deleted by workers and admins only", async () => {
    for (const role of ["starter", "operator"] as const) {
      expect(await put(role), role).toMatchObject({ status: 403, json: { code: "TAPE_FORBIDDEN" } });
    }
    expect(await current.store.read.value("acme", key)).toBeUndefined();
    expect((await put("worker")).status).toBe(200);
    const gone = await ask(current.server.exchange, "DELETE", `${path}?version=1`, {
      token: tokenOf("acme", "starter"),
    });
    expect(gone).toMatchObject({ status: 403, json: { code: "TAPE_FORBIDDEN" } });
    expect(await current.store.read.value("acme", key)).toMatchObject({ version: 1, deleted: false });
    expect((await put("admin")).status).toBe(200);
  });
});
