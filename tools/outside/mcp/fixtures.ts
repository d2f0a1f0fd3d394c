// A test build: our protocol code with the tools that the conformance suite expects, on a plain HTTP server.
import { createServer, type IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLog } from "../../../src/base/log.ts";
import type { Api } from "../../../src/mcp/api.ts";
import { handlePost } from "../../../src/mcp/http.ts";
import { McpServer } from "../../../src/mcp/mcp-server.ts";
import { type Content, readOnly, type Tool, type ToolContext } from "../../../src/mcp/tool.ts";
import { isTapeError, TapeError } from "../../../src/model/errors.ts";
import { checkOrigin } from "../../../src/server/origin.ts";

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const silence = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";
const text = (line: string): Content => ({ type: "text", text: line });
const image: Content = { type: "image", data: pixel, mimeType: "image/png" };
const resource = (uri: string, mimeType: string, content: string): Content => ({
  type: "resource",
  resource: { uri, mimeType, text: content },
});

function fixture(name: string, run: (context: ToolContext) => Promise<readonly Content[]> | readonly Content[]): Tool {
  return {
    ...{ name, title: name, description: `a fixture of the suite: ${name}`, role: "reader", annotations: readOnly },
    args: z.strictObject({}),
    ...(name.startsWith("test_tool_with_") && { notifies: true as const }),
    run: async (_args, context) => ({ content: await run(context) }),
  };
}

const fixtures: readonly Tool[] = [
  fixture("test_simple_text", () => [text("This is a simple text response for testing.")]),
  fixture("test_image_content", () => [image]),
  fixture("test_audio_content", () => [{ type: "audio", data: silence, mimeType: "audio/wav" }]),
  fixture("test_embedded_resource", () => [
    resource("test://embedded-resource", "text/plain", "This is an embedded resource content."),
  ]),
  fixture("test_multiple_content_types", () => [
    text("Multiple content types test:"),
    image,
    resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
  ]),
  fixture("test_error_handling", () => {
    throw new TapeError("TAPE_BAD_INPUT", "This tool intentionally returns an error for testing");
  }),
  fixture("test_tool_with_logging", async ({ message }) => {
    for (const line of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      message("info", line);
      await sleep(50);
    }
    return [text("three messages were sent")];
  }),
  fixture("test_tool_with_progress", async ({ progress }) => {
    for (const done of [0, 50, 100]) {
      progress(done, 100, `${done} of 100`);
      await sleep(50);
    }
    return [text("three steps are done")];
  }),
];

/** The scenarios call no tool of ours here. */
const noApi: Api = {
  call: () => Promise.reject(new TapeError("TAPE_NOT_FOUND", "the test build has no store")),
};

export interface TestBuild {
  readonly url: string;
  close(): void;
}

export async function serveFixtures(): Promise<TestBuild> {
  const build = new McpServer({
    ...{ api: noApi, clock: systemClock, log: silentLog, tools: fixtures, role: "reader", version: "0.0.0-test" },
  });
  const server = createServer((request, response) => {
    const headers = request.headers as Record<string, string>;
    const answered = async () => {
      if (request.method !== "POST") return response.writeHead(405, { allow: "POST" }).end();
      checkOrigin({ headers }, { credentials: "none" });
      const json: unknown = JSON.parse(await bodyOf(request));
      const signal = new AbortController().signal;
      const { status, type, body = "" } = await handlePost(build, { headers, json, signal });
      response.writeHead(status, type === undefined ? {} : { "content-type": type });
      if (typeof body === "string") return response.end(body);
      for await (const event of body) response.write(event);
      return response.end();
    };
    answered().catch((error: unknown) => response.writeHead(isTapeError(error) ? 403 : 400).end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
