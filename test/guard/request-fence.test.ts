import { describe, expect, it } from "vitest";
import { type GuardTable, memoryGuardTable } from "../../src/guard/guard-table.ts";
import { fencedHandler } from "../../src/guard/http-handler.ts";
import { fenceHeaders, RequestFence } from "../../src/guard/request-fence.ts";
import { TapeError } from "../../src/model/errors.ts";

const headersOf = (token: bigint, name = "sweeper") => {
  const headers = fenceHeaders({ name, token });
  return (header: string) => headers[header];
};
const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    (value) => value,
    (error: unknown) => (error instanceof TapeError ? error.code : Promise.reject(error)),
  );
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("RequestFence", () => {
  it("accepts equal and newer tokens and refuses lower ones within a scope", async () => {
    const fence = new RequestFence();
    const bring = (token: bigint, name?: string) => codeOf(fence.run(headersOf(token, name), () => "in"));
    expect(await bring(9n)).toBe("in");
    expect(await bring(9n)).toBe("in");
    expect(await bring(10n)).toBe("in");
    expect(await bring(9n)).toBe("TAPE_FENCED");
    expect(await bring(1n, "another")).toBe("in");
  });

  it("makes a newer token wait for older requests, and aborts those", async () => {
    const fence = new RequestFence();
    const did: string[] = [];
    const leave: (() => void)[] = [];
    const slow = (who: string) =>
      fence.run(headersOf(1n), async ({ abortSignal }) => {
        did.push(`${who} in`);
        abortSignal.addEventListener("abort", () => did.push(`${who} told`));
        await new Promise<void>((resolve) => void leave.push(resolve));
        did.push(`${who} out`);
      });
    const old = [slow("a"), slow("b")];
    await turn();
    expect(did).toEqual(["a in", "b in"]);
    const newer = [2n, 2n].map((token) => fence.run(headersOf(token), () => void did.push("newer in")));
    await turn();
    expect(await codeOf(fence.run(headersOf(1n), () => "in"))).toBe("TAPE_FENCED"); // from the knock on
    expect(did).toEqual(["a in", "b in", "a told", "b told"]);
    leave[0]!();
    await turn();
    expect(did.at(-1)).toBe("a out");
    leave[1]!();
    await Promise.all([...old, ...newer]);
    expect(did.slice(-3)).toEqual(["b out", "newer in", "newer in"]);
  });

  it("admits the highest of two newer tokens and refuses the other", async () => {
    const fence = new RequestFence();
    let leave = () => {};
    const old = fence.run(headersOf(1n), () => new Promise<void>((resolve) => (leave = resolve)));
    await turn();
    const middle = codeOf(fence.run(headersOf(2n), () => "in"));
    const highest = codeOf(fence.run(headersOf(3n), () => "in"));
    await turn();
    leave();
    await old;
    expect(await Promise.all([middle, highest])).toEqual(["TAPE_FENCED", "in"]);
  });

  it("reads a shared guard table, and retries after it fails", async () => {
    const shared = memoryGuardTable();
    await shared.raise("default/sweeper", 7n);
    let fails = 1;
    const guards: GuardTable = {
      raise: async (scope, token) => {
        if (fails-- > 0) throw new Error("away");
        return shared.raise(scope, token);
      },
    };
    const fence = new RequestFence(guards);
    await expect(fence.run(headersOf(8n), () => "in")).rejects.toThrow("away");
    expect(await codeOf(fence.run(headersOf(6n), () => "in"))).toBe("TAPE_FENCED");
    expect(await codeOf(fence.run(headersOf(8n), () => "in"))).toBe("in");
  });

  it("carries any lease name, and takes an effect's key as a scope", async () => {
    const guards = memoryGuardTable();
    const fence = new RequestFence(guards);
    const seen: unknown[] = [];
    const note = ({ key, token }: { key: string; token: bigint }) => void seen.push([key, token]);
    await fence.run(headersOf(1n, "Mülleimer\n€"), note);
    const byKey = fenceHeaders({ key: "run-7:2", token: 4n });
    expect(byKey).toEqual({ "idempotency-key": "run-7:2", "tape-fencing-token": "4" });
    await fence.run((name) => byKey[name], note);
    expect(seen).toEqual([
      ["default/Mülleimer\n€", 1n],
      ["run-7:2", 4n],
    ]);
  });
});

describe("fencedHandler", () => {
  const handle = fencedHandler(async (request, { token }) => new Response(`${await request.text()} under ${token}`));
  const send = (headers: Record<string, string>) =>
    handle(new Request("http://service/", { method: "POST", headers, body: "put" }));

  it("responds 412 to a stale token and 428 to a missing one", async () => {
    const current = await send(fenceHeaders({ name: "sweeper", token: 5n }));
    expect([current.status, await current.text()]).toEqual([200, "put under 5"]);
    const stale = await send(fenceHeaders({ name: "sweeper", token: 4n }));
    expect([stale.status, stale.headers.get("content-type")]).toEqual([412, "application/problem+json"]);
    expect(await stale.json()).toMatchObject({
      code: "TAPE_FENCED",
      details: { scope: "default/sweeper", token: "4", highest: "5" },
    });
    const bare = await send({});
    expect([bare.status, ((await bare.json()) as { code: string }).code]).toEqual([428, "TAPE_BAD_INPUT"]);
  });

  it.each(["", "-1", "1.5", "0x10", "9223372036854775808", "99999999999999999999", "abc"])(
    "refuses %j as a token without locking out other holders",
    async (token) => {
      const answer = await send({ "tape-lease": "x", "tape-fencing-token": token });
      expect(answer.status).toBe(428);
      expect((await send({ "tape-lease": "x", "tape-fencing-token": "0" })).status).toBe(200);
    },
  );

  it("responds 412 when a guard inside the handler refuses; rethrows other errors", async () => {
    const request = () =>
      new Request("http://service/", { method: "POST", headers: fenceHeaders({ name: "a", token: 1n }), body: "" });
    const late = fencedHandler(() => {
      throw new TapeError("TAPE_FENCED", "the table knows better");
    });
    expect((await late(request())).status).toBe(412);
    const broken = fencedHandler(() => {
      throw new TapeError("TAPE_BAD_INPUT", "of the handler itself");
    });
    await expect(broken(request())).rejects.toThrow("of the handler itself");
  });
});
