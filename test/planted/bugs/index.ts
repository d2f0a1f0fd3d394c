import type { Bug } from "../bug.ts";
import { alarmBugs } from "./alarms.ts";
import { buildBugs } from "./builds.ts";
import { effectBugs } from "./effects.ts";
import { endingBugs } from "./endings.ts";
import { generationBugs } from "./generations.ts";
import { journalBugs } from "./journals.ts";
import { leaseBugs } from "./leases.ts";
import { neighbourBugs } from "./neighbours.ts";
import { objectBugs } from "./objects.ts";
import { queueBugs } from "./queues.ts";
import { retentionBugs } from "./retention.ts";
import { scopeBugs } from "./scopes.ts";
import { sealedBugs } from "./sealed.ts";
import { serviceBugs } from "./services.ts";
import { shardBugs } from "./shards.ts";
import { sinkBugs } from "./sinks.ts";
import { stepBugs } from "./steps.ts";
import { strangerBugs } from "./strangers.ts";
import { streamBugs } from "./streams.ts";
import { talkingBugs } from "./talking.ts";
import { transactionBugs } from "./transactions.ts";

/** Every planted bug, in the order of docs/planted-bugs.md. */
export const bugs: readonly Bug[] = [
  ...leaseBugs,
  ...effectBugs,
  ...journalBugs,
  ...stepBugs,
  ...endingBugs,
  ...serviceBugs,
  ...transactionBugs,
  ...strangerBugs,
  ...neighbourBugs,
  ...talkingBugs,
  ...queueBugs,
  ...objectBugs,
  ...alarmBugs,
  ...sinkBugs,
  ...shardBugs,
  ...retentionBugs,
  ...buildBugs,
  ...streamBugs,
  ...sealedBugs,
  ...scopeBugs,
  ...generationBugs,
];
