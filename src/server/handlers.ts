import type { Handlers, ServerDeps } from "./handler-types.ts";
import { blobHandlers } from "./handlers/blobs.ts";
import { buildHandlers } from "./handlers/builds.ts";
import { conversationHandlers } from "./handlers/conversations.ts";
import { effectHandlers } from "./handlers/effects.ts";
import { leaseHandlers } from "./handlers/leases.ts";
import { mcpHandlers } from "./handlers/mcp.ts";
import { overviewHandlers } from "./handlers/overview.ts";
import { queueHandlers } from "./handlers/queues.ts";
import { quotaHandlers } from "./handlers/quotas.ts";
import { retentionHandlers } from "./handlers/retention.ts";
import { runHandlers } from "./handlers/runs.ts";
import { serviceHandlers } from "./handlers/service.ts";
import { sinkHandlers } from "./handlers/sinks.ts";
import { storeHandlers } from "./handlers/store.ts";
import { streamHandlers } from "./handlers/streams.ts";
import { talkHandlers } from "./handlers/talk.ts";
import { valueHandlers } from "./handlers/values.ts";

/** One handler for every route of the contract: a missing or extra one does not compile. */
export function handlersOf(deps: ServerDeps): Handlers {
  return {
    ...runHandlers(deps),
    ...effectHandlers(deps),
    ...leaseHandlers(deps),
    ...queueHandlers(deps),
    ...buildHandlers(deps),
    ...sinkHandlers(deps),
    ...valueHandlers(deps),
    ...overviewHandlers(deps),
    ...storeHandlers(deps),
    ...talkHandlers(deps),
    ...streamHandlers(deps),
    ...conversationHandlers(deps),
    ...blobHandlers(deps),
    ...quotaHandlers(deps),
    ...retentionHandlers(deps),
    ...serviceHandlers(deps),
    ...mcpHandlers(deps),
  };
}
