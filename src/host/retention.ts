import type { Clock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import type { Duration } from "../base/duration.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { TapeError } from "../model/errors.ts";
import type { RetentionPolicy } from "../model/retention.ts";
import { retentionHandler } from "../reactor/retention.ts";
import type { Archive } from "../retention/archive.ts";
import { fileArchive } from "../retention/file-archive.ts";
import type { RetentionCounts, RetentionSettings } from "../retention/pass.ts";
import { assertKnownKeys, durationOf, durationOrThrow, numberOf, shown } from "../sdk/validate.ts";
import type { Store } from "../store/contract/store.ts";
import type { ReactorSpec } from "./reactors.ts";
import { unsealed } from "./sealing.ts";

/** How long ended runs are kept, and where they go before they are deleted. */
export interface RetentionOptions {
  /** `file:FOLDER`, or an archive of your own. */
  readonly archive: string | Archive;
  /** How long ended runs are kept. Default: forever, unless their workflow says otherwise. */
  readonly default?: Duration | "forever";
  /** By workflow; wins over the workflow's option `retain`, which wins over the default. */
  readonly workflows?: Readonly<Record<string, Duration | "forever">>;
  /** Trees of one file, deleted in one transaction. Default 1 000. */
  readonly batch?: number;
  /** Between two passes. Default 60 s. */
  readonly interval?: Duration;
}

interface Seams {
  readonly clock: Clock;
  readonly random: Random;
}

const defaultInterval = 60_000;

/** The policy of these options, in milliseconds. */
export function policyOf(subject: string, options: Pick<RetentionOptions, "default" | "workflows">): RetentionPolicy {
  const ms = (field: string, kept: Duration | "forever"): number | null =>
    kept === "forever" ? null : Math.ceil(durationOrThrow(subject, field, kept));
  const byDefault = options.default === undefined ? null : ms("default", options.default);
  const workflows = Object.entries(options.workflows ?? {}).map(([name, kept]) => [
    name,
    ms(`workflows.${name}`, kept),
  ]);
  return {
    ...(byDefault !== null && { defaultMs: byDefault }),
    workflows: Object.fromEntries(workflows) as Record<string, number | null>,
  };
}

export function archiveOf(subject: string, archive: string | Archive, seams: Seams): Archive {
  if (typeof archive === "string" && archive.startsWith("file:") && archive.length > 5)
    return fileArchive(archive.slice("file:".length), seams);
  const { put, has, get } = (archive ?? {}) as Partial<Archive>;
  if ([put, has, get].every((method) => typeof method === "function")) return archive as Archive;
  const message = `${subject}: archive is "file:FOLDER" or an object with put, has and get, not ${shown(archive)}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "archive" });
}

export function checkRetention(subject: string, options: RetentionOptions | undefined): void {
  if (options !== undefined) retentionSettings(subject, options, undefined);
}

function retentionSettings(
  subject: string,
  options: RetentionOptions,
  seams: Seams | undefined,
): RetentionSettings & { readonly intervalMs: number } {
  const about = `${subject}: retention`;
  assertKnownKeys(about, options, ["archive", "default", "workflows", "batch", "interval"], {
    keepGenerations: "generations of a live run are kept",
  });
  const batch =
    options.batch === undefined ? undefined : numberOf(about, "batch", options.batch, 1_000, { min: 1, max: 5_000 });
  return {
    policy: policyOf(about, options),
    archive: archiveOf(about, options.archive, seams ?? ({} as Seams)),
    ...defined({ batch }),
    intervalMs: durationOf(about, "interval", options.interval, defaultInterval),
  };
}

/** The reactor `retention`: one replica at a time, at its interval, and when an operator requests it. */
export function retentionSpec(
  subject: string,
  options: RetentionOptions,
  deps: Seams & { readonly store: Store; readonly tenant: string; readonly log: Log; readonly counts: RetentionCounts },
): ReactorSpec {
  const { intervalMs, ...settings } = retentionSettings(subject, options, deps);
  const store = unsealed(deps.store); // what is sealed stays sealed in the archive
  const handler = retentionHandler({ ...deps, store }, settings);
  let isRequested = false;
  store.onWake((wake) => {
    if (wake.of === "reactor" && wake.reactor === "retention" && (wake.tenant ?? deps.tenant) === deps.tenant)
      isRequested = true;
  });
  return {
    name: "retention",
    intervalMs,
    isRequested: () => isRequested,
    custom: (context) => {
      isRequested = false;
      return handler(context);
    },
  };
}

/** The same as a list, for a composition. */
export const retentionSpecs = (
  options: RetentionOptions | undefined,
  deps: Omit<Parameters<typeof retentionSpec>[2], "counts">,
  { retention: counts }: { readonly retention: RetentionCounts },
): ReactorSpec[] => (options === undefined ? [] : [retentionSpec("the app", options, { ...deps, counts })]);
