import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Dashboard, pageResponse } from "../../src/server/dashboard-page.ts";
import { dashboardIn } from "../../src/server/static.ts";
import { ask, stage } from "./stage.ts";

const html = { accept: "text/html,application/xhtml+xml" };
const text = (body: unknown): string => new TextDecoder().decode(body as Uint8Array);

describe("the dashboard's files", () => {
  let folder: string;
  let dashboard: Dashboard;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "tape-page-"));
    mkdirSync(join(folder, "dist", "assets"), { recursive: true });
    writeFileSync(join(folder, "secret.json"), "{}");
    writeFileSync(join(folder, "dist", "index.html"), "<title>Tape</title>");
    writeFileSync(join(folder, "dist", "icon.svg"), "<svg/>");
    writeFileSync(join(folder, "dist", "assets", "index-a1.js"), "export {};");
    dashboard = dashboardIn(pathToFileURL(`${join(folder, "dist")}/`));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const get = (url: string, headers: Record<string, string> = {}) =>
    pageResponse({ method: "GET", url, headers }, dashboard);

  it("allow only same-origin resources, and are never cached as a page", async () => {
    const page = await get("/");
    expect(text(page?.body)).toBe("<title>Tape</title>");
    expect(page?.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-cache",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
    });
    const rules = page?.headers["content-security-policy"] ?? "";
    expect(rules).toContain("default-src 'self'");
    expect(rules).toContain("frame-ancestors 'none'");
    expect(rules).not.toMatch(/unsafe|\*|https?:|data:/);
  });

  it("are immutable only with a hash in the name", async () => {
    expect((await get("/assets/index-a1.js"))?.headers).toMatchObject({
      "content-type": "text/javascript; charset=utf-8",
      "cache-control": "public, max-age=31536000, immutable",
    });
    expect((await get("/icon.svg"))?.headers["cache-control"]).toBe("no-cache");
  });

  it("serve the page for browser paths, and 404 for programs", async () => {
    expect(text((await get("/runs/a.b%2Fc?tab=journal", html))?.body)).toBe("<title>Tape</title>");
    expect(await get("/runs/a.b")).toBeUndefined();
    expect(await get("/v1/nowhere", html)).toBeUndefined();
    expect(await get("/assets/gone.js", html)).toBeUndefined();
    expect(await pageResponse({ method: "POST", url: "/", headers: html }, dashboard)).toBeUndefined();
  });

  it.each([
    "/../secret.json",
    "/assets/../../secret.json",
    "/..%2fsecret.json",
    "/%2e%2e/secret.json",
    "//secret.json",
    "/assets/..\\..\\secret.json",
    "/.hidden.json",
  ])("no path climbs out: %s", async (path) => {
    expect(await dashboard(path)).toBeUndefined();
    expect(await get(path)).toBeUndefined();
  });

  it("are read again after a build", async () => {
    await get("/");
    writeFileSync(join(folder, "dist", "index.html"), "<title>New</title>");
    await expect.poll(async () => text((await get("/"))?.body)).toBe("<title>New</title>");
  });
});

describe("without a built dashboard", () => {
  it("explains what is missing, and refuses other paths", async () => {
    const { server, close } = await stage();
    const page = await ask(server.exchange, "GET", "/", { headers: html });
    expect(page.status).toBe(200);
    expect(page.json).toContain("npm run dashboard");
    expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
    expect(await ask(server.exchange, "GET", "/runs", { headers: html })).toMatchObject({
      status: 404,
      json: { code: "TAPE_NO_ROUTE" },
    });
    const strange = await ask(server.exchange, "GET", "/", { headers: { ...html, host: "evil.example" } });
    expect(strange.status).toBe(403);
    await close();
  });
});
