import { systemClock } from "../../base/clock.ts";
import { type Log, logOf } from "../../base/log.ts";
import { environmentToken } from "../../client/token.ts";
import { type OpenedApi, serverApi, storeApi } from "../../host/mcp.ts";
import { openStore } from "../../host/open-store.ts";
import { McpServer } from "../../mcp/mcp-server.ts";
import { type StdioConversation, serveStdio } from "../../mcp/stdio.ts";
import { tools } from "../../mcp/tools/index.ts";
import { type Role, roles } from "../../model/roles.ts";
import { assertExists, settingsOf, storeOptions } from "../app.ts";
import { type Command, type Invocation, UsageError } from "../command.ts";
import { configuredRunner, remoteOf } from "../store-settings.ts";
import { version } from "../version.ts";

/** Serves one client over standard input and output, until it closes its end. */
export const mcp: Command = {
  name: "mcp",
  summary: "serves tools for models over standard input and output (Model Context Protocol)",
  options: {
    server: {
      value: "URL",
      help: "a server's http(s)://…, instead of a store; its token decides which tools there are",
    },
    token: { value: "ID.SECRET", help: "token of the server (default: TAPE_TOKEN, which no process list shows)" },
    role: { value: "ROLE", help: "with a store: reader, starter or operator (default: reader)" },
    ...storeOptions,
  },
  run,
};

async function run(invocation: Invocation): Promise<number> {
  let conversation: StdioConversation | undefined;
  const toStderr = logOf("warn");
  const log: Log = (level, event, fields) => {
    toStderr(level, event, fields);
    const isGrave = level === "warn" || level === "error";
    if (isGrave) conversation?.message(level === "warn" ? "warning" : "error", { event, ...fields });
  };
  await using opened = await open(invocation, log);
  const { api } = opened;
  const { role } = await api.call("whoami", {});
  const clock = systemClock;
  const server = new McpServer({ api, clock, log, tools, role, version });
  process.stdout.on("error", () => process.exit(0)); // the client has gone, and nothing can reach it
  conversation = serveStdio({ server, input: process.stdin, write: (line) => process.stdout.write(line), clock, log });
  await conversation.done;
  return 0;
}

async function open(invocation: Invocation, log: Log): Promise<OpenedApi> {
  const [server, token] = [invocation.text("server"), invocation.text("token")];
  if (server !== undefined) {
    for (const option of ["store", "role"]) {
      if (invocation.text(option) !== undefined)
        throw new UsageError(`mcp: --${option} belongs to a store, not to --server`);
    }
    return serverApi(server, token ?? environmentToken(server, process.env), log);
  }
  const { config, url } = settingsOf(invocation);
  if (/^https?:/i.test(url)) return serverApi(url, token ?? remoteOf(config, url).remote?.token, log);
  if (token !== undefined) throw new UsageError("mcp: --token belongs to a server; with a store give --role");
  const role = roleOf(invocation.text("role") ?? "reader");
  assertExists(url);
  const runner = await configuredRunner(config, process.cwd());
  const store = await openStore(url, { log });
  const tenant = invocation.text("tenant") ?? config.settings.tape.tenant;
  const opened = storeApi({ store, tenant, role, version, log, ...(runner !== undefined && { runner }) });
  return {
    api: opened.api,
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]();
      await store.close();
    },
  };
}

/** A model drives no runs and makes no tokens, so the other roles would add nothing. */
const modelRoles: readonly Role[] = roles.filter((role) => role !== "worker" && role !== "admin");

function roleOf(text: string): Role {
  const role = modelRoles.find((one) => one === text);
  if (role === undefined) throw new UsageError(`mcp: --role must be ${modelRoles.join(", ")}, not ${text}`);
  return role;
}
