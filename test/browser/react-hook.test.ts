import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { rolldown } from "rolldown";
import { expect, it, onTestFinished } from "vitest";
import { serve } from "../../src/host/serve.ts";
import { Tape } from "../../src/host/tape.ts";
import { stream } from "../../src/sdk/stream.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { openBrowser } from "./chromium.ts";

const root = join(import.meta.dirname, "../..");

const page = `
import { createRoot } from "react-dom/client";
import { useStream } from "./hook.tsx";

function Page() {
  const { text, done } = useStream(decodeURIComponent(location.hash.slice(1)));
  return <p id="text" data-done={done}>{text}</p>;
}
createRoot(document.body.appendChild(document.createElement("main"))).render(<Page />);
`;

/** The hook of docs/streams.md in a page that uses it: the sources for the compiler, and one script for the browser. */
async function built(): Promise<{ folder: string; script: string }> {
  const folder = mkdtempSync(join(root, "test/docs/.types-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [, hook = ""] = /^```tsx\n([\s\S]*?)^```/m.exec(readFileSync(join(root, "docs/streams.md"), "utf8")) ?? [];
  writeFileSync(join(folder, "hook.tsx"), hook);
  writeFileSync(join(folder, "page.tsx"), page);
  const settings = { extends: "../../../dashboard/tsconfig.json", include: ["*.tsx"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings));
  const transform = { define: { "process.env.NODE_ENV": '"production"' } };
  const bundle = await rolldown({ input: join(folder, "page.tsx"), platform: "browser", transform });
  const { output } = await bundle.generate({ format: "iife" });
  await bundle.close();
  return { folder, script: output[0].code };
}

it("the React hook of docs/streams.md compiles, and follows a stream through a rewind to its end", {
  timeout: 120_000,
}, async () => {
  const { folder, script } = await built();
  const tsc = promisify(execFile)(join(root, "node_modules/.bin/tsc"), ["--noEmit", "-p", folder]);
  expect((await tsc.catch((error: { stdout: string }) => error)).stdout).toBe("");

  const pages = createServer((_, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.end(`<!doctype html><title>page</title><body><script>${script.replaceAll("</", "<\\/")}</script></body>`);
  }).listen(0, "127.0.0.1");
  await once(pages, "listening");
  const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;

  const tokens = stream<string>("tokens");
  const half = Promise.withResolvers<void>();
  const whole = Promise.withResolvers<void>();
  const answer = workflow("answer", async (tape) => {
    await tape.step("first", (d) => d.stream(tokens).write("first, "));
    await tape.step(
      "second",
      async (d) => {
        await d.stream(tokens).write(d.attempt === 1 ? "half a sen" : "a whole sentence");
        await (d.attempt === 1 ? half : whole).promise;
        if (d.attempt === 1) throw new Error("the connection broke");
      },
      { retry: { attempts: 2, base: "10ms" } },
    );
  });
  const server = await serve({ store: "memory:", port: 0, log: () => {}, streamOrigins: origin });
  const app = await Tape.connect(server.url, { runner: createRunner({ workflows: [answer] }), log: "silent" });
  const browser = await openBrowser();
  onTestFinished(async () => {
    await browser.close();
    await app.close();
    await server.stop(1_000);
    pages.close();
  });

  const run = await app.start(answer, undefined);
  const token = await app.streams.token(run.id, tokens, { ttl: "1h" });
  const url = `${server.url}/v1/runs/${run.id}/streams/tokens?token=${token}`;
  const tab = await browser.newPage();
  await tab.goto(`${origin}/#${encodeURIComponent(url)}`);
  const shows = (text: string, done: boolean) => tab.locator(`#text[data-done="${done}"]`, { hasText: text }).waitFor();
  await shows("first, half a sen", false);
  half.resolve();
  await shows("first, a whole sentence", false);
  expect(await tab.locator("#text").textContent()).toBe("first, a whole sentence"); // the half one is gone
  whole.resolve();
  await shows("first, a whole sentence", true);
});
