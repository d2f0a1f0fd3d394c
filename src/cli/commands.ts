import type { Command } from "./command.ts";
import { auditCommands } from "./commands/audit.ts";
import { buildCommands } from "./commands/builds.ts";
import { completionCommand } from "./commands/completion.ts";
import { config } from "./commands/config.ts";
import { conversation } from "./commands/conversation.ts";
import { demos } from "./commands/demo.ts";
import { deploy } from "./commands/deploy.ts";
import { dev } from "./commands/dev.ts";
import { effectCommands } from "./commands/effects.ts";
import { erase } from "./commands/erase.ts";
import { forkCommand } from "./commands/fork.ts";
import { init } from "./commands/init.ts";
import { inspectCommands } from "./commands/inspect.ts";
import { leaseCommands } from "./commands/leases.ts";
import { mcp } from "./commands/mcp.ts";
import { prune } from "./commands/prune.ts";
import { queueCommands } from "./commands/queues.ts";
import { quotaCommands } from "./commands/quotas.ts";
import { retentionCommands } from "./commands/retention.ts";
import { runCommands } from "./commands/runs.ts";
import { serve } from "./commands/serve.ts";
import { shardCommands } from "./commands/shards.ts";
import { sinkCommands } from "./commands/sinks.ts";
import { statusCommands } from "./commands/status.ts";
import { storeCommands } from "./commands/store.ts";
import { streamCommands } from "./commands/streams.ts";
import { talkCommands } from "./commands/talk.ts";
import { tokenCommands } from "./commands/tokens.ts";

/** Everything that the program can do, in the order in which --help shows it. */
export const commands: readonly Command[] = [
  init,
  dev,
  ...statusCommands,
  ...runCommands,
  ...talkCommands,
  ...streamCommands,
  conversation,
  forkCommand,
  ...inspectCommands,
  ...effectCommands,
  ...leaseCommands,
  ...queueCommands,
  ...buildCommands,
  ...sinkCommands,
  ...storeCommands,
  ...shardCommands,
  prune,
  erase,
  ...retentionCommands,
  serve,
  mcp,
  ...tokenCommands,
  ...quotaCommands,
  ...auditCommands,
  config,
  deploy,
  completionCommand(() => commands),
  ...demos,
];
