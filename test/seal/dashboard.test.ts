import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { opened, sealedFor, setCodecEndpoint } from "../../dashboard/src/sealed.ts";
import { fromJson, isSealed } from "../../src/base/codec.ts";
import { serve } from "../../src/host/serve.ts";
import { Tape } from "../../src/host/tape.ts";
import { codecHandler } from "../../src/seal/codec-handler.ts";
import { pageResponse } from "../../src/server/dashboard-page.ts";
import { testCodec } from "./codec.ts";
import { canaries, found, scenario } from "./scenario.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  setCodecEndpoint(undefined, "default");
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

/** The codec endpoint of a user, on a port of its own. */
async function endpoint(allowed: () => boolean = () => true) {
  const handle = codecHandler(testCodec(), { origins: [], authorize: allowed });
  let calls = 0;
  const server = createServer(async (incoming, outgoing) => {
    calls++;
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const headers = { "content-type": incoming.headers["content-type"] ?? "" };
    const body = Buffer.concat(chunks);
    const request = new Request(`http://codec${incoming.url}`, { method: incoming.method ?? "GET", headers, body });
    const response = await handle(request);
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.end(await response.text());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => new Promise((resolve) => server.close(resolve)));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/codec`, calls: () => calls };
}

/** What the dashboard fetches about the run of the scenario. */
async function responses(url: string): Promise<unknown[]> {
  const paths = ["/v1/runs", "/v1/effects", "/v1/gates", "/v1/schedules", "/v1/values?prefix="];
  for (const run of ["main", "losing", "failing"]) paths.push(`/v1/runs/${run}/journal`, `/v1/runs/${run}`);
  return Promise.all(paths.map(async (path) => (await fetch(url + path)).json()));
}

async function served(codecEndpoint?: string) {
  const server = await serve({ store: "memory:", port: 0, log: "silent", ...(codecEndpoint && { codecEndpoint }) });
  cleanups.push(() => server.stop());
  const { runner, play } = scenario();
  const app = await Tape.connect(server.url, { runner, codec: testCodec(), log: "silent" });
  cleanups.push(() => app.close());
  await play(app);
  return server;
}

describe("the dashboard", () => {
  it("shows payloads that the endpoint decodes, and only those", async () => {
    const { url, calls } = await endpoint();
    const server = await served(url);
    const raw = await responses(server.url);
    expect(found(JSON.stringify(raw))).toEqual([]);
    const hidden = JSON.stringify(await opened(structuredClone(raw)));
    expect(found(hidden)).toEqual([]);
    expect(hidden).toContain('{"encrypted":"k1"}');
    expect(hidden).not.toContain('"sealed"');

    const { codecEndpoint, tenant } = (await (await fetch(`${server.url}/v1/whoami`)).json()) as {
      codecEndpoint: string;
      tenant: string;
    };
    expect(codecEndpoint).toBe(url);
    setCodecEndpoint(codecEndpoint, tenant);
    const shown = JSON.stringify(await opened(structuredClone(raw)));
    // Inputs, results, arguments, payloads of gates and inputs of schedules, in records and in rows.
    expect(found(shown)).toEqual(expect.arrayContaining(["input", "step", "args", "payload", "schedule", "app-value"]));
    expect(found(shown).length).toBeGreaterThan(canaries.length / 2);
    const before = calls();
    await opened(structuredClone(raw));
    expect(calls()).toBe(before); // what was decoded once is not asked again
    const sealed = fromJson(await sealedFor("main", { yes: true }));
    expect(isSealed(sealed) && sealed.place).toBe("run:main");
  });

  it("without permission payloads stay encrypted, and nothing is sent in clear", async () => {
    const { url } = await endpoint(() => false);
    const server = await served(url);
    setCodecEndpoint(url, "default");
    const shown = JSON.stringify(await opened(await responses(server.url)));
    expect(found(shown)).toEqual([]);
    await expect(sealedFor("main", "secret")).rejects.toThrow(/was not sent/);
  });

  it("its page may call the endpoint and no other origin", async () => {
    const page = { type: "text/html", body: new Uint8Array(), lasting: false };
    const request = { method: "GET", url: "/", headers: { accept: "text/html" } };
    const rulesOf = async (codec?: string) =>
      (await pageResponse(request, async () => page, codec))?.headers["content-security-policy"] ?? "";
    expect(await rulesOf("https://codec.example/tape")).toContain("connect-src 'self' https://codec.example;");
    expect(await rulesOf()).not.toContain("connect-src");
    for (const bad of ["codec.example", "https://a.example; script-src *", "https://a.example, x", "ftp://a"]) {
      const open = serve({ store: "memory:", port: 0, codecEndpoint: bad });
      await expect(open).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
    }
  });
});
