import type { Clock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import type { Duration } from "../base/duration.ts";
import type { LogOption } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { assertKnownKeys, assertName, textOr } from "../sdk/validate.ts";
import type { Store } from "../store/contract/store.ts";
import { bad } from "./paging.ts";

/** Options of {@link createWorld}. Each but the seams has a variable of the environment, which applies without it. */
export interface WorldOptions {
  /** A store URL, or an open store, which then stays open. `WORKFLOW_TAPE_STORE`; default `sqlite:./tape.db`. */
  readonly store?: string | Store;
  /** `WORKFLOW_TAPE_TENANT`; default: the store's, or `default`. */
  readonly tenant?: string;
  /** Where the framework's routes are mounted. `WORKFLOW_TAPE_BASE_URL`; default: `PORT` on this machine. */
  readonly baseUrl?: string;
  /** The first part of its keys. `WORKFLOW_TAPE_PREFIX`; default `workflow`. */
  readonly prefix?: string;
  /** Messages that this process delivers at once. `WORKFLOW_TAPE_CONCURRENCY`; default 200. */
  readonly concurrency?: number;
  /** After how long without a sign of life a process loses its messages. `WORKFLOW_TAPE_LEASE_TTL`; default 30 s. */
  readonly leaseTtl?: Duration;
  readonly log?: LogOption;
  readonly clock?: Clock;
  readonly random?: Random;
}

type Environment = Readonly<Record<string, string | undefined>>;

const keys = ["store", "tenant", "baseUrl", "prefix", "concurrency", "leaseTtl", "log", "clock", "random"];

/** The options with those of the environment. */
export function worldOptions(given: WorldOptions, env: Environment) {
  assertKnownKeys("createWorld", given, keys);
  const concurrency = env.WORKFLOW_TAPE_CONCURRENCY;
  const options = {
    store: env.WORKFLOW_TAPE_STORE ?? "sqlite:./tape.db",
    prefix: env.WORKFLOW_TAPE_PREFIX ?? "workflow",
    ...defined({ tenant: env.WORKFLOW_TAPE_TENANT, leaseTtl: env.WORKFLOW_TAPE_LEASE_TTL as Duration | undefined }),
    ...(concurrency !== undefined && { concurrency: Number(concurrency) }),
    ...defined({ ...given }),
  };
  assertName("createWorld: prefix", options.prefix);
  textOr("createWorld", "baseUrl", given.baseUrl);
  checkedUrl(given.baseUrl ?? env.WORKFLOW_TAPE_BASE_URL);
  return options;
}

/** The address of the handlers as far as it is known by now. */
export function baseUrlOf({ baseUrl }: Pick<WorldOptions, "baseUrl">, env: Environment): string | undefined {
  const { PORT: port } = env;
  return (
    baseUrl ??
    env.WORKFLOW_TAPE_BASE_URL ??
    (port === undefined || port === "" ? undefined : `http://localhost:${port}`)
  );
}

function checkedUrl(url: string | undefined): void {
  if (url === undefined || (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol))) return;
  throw bad("baseUrl", `createWorld: baseUrl is an address such as "http://127.0.0.1:3000", not ${url}`);
}
