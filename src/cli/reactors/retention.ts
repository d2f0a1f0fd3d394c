import { resolve } from "node:path";
import type { Duration } from "../../base/duration.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { RetentionOptions } from "../../host/retention.ts";
import { TapeError } from "../../model/errors.ts";
import type { Archive } from "../../retention/archive.ts";
import { folderOf } from "../store-settings.ts";
import { loadFunction } from "./module.ts";

const key = "tape.retention.archive";

/** What `tape.retention` says; undefined without an archive. */
export async function configuredRetention(config: LoadedConfig, cwd: string): Promise<RetentionOptions | undefined> {
  const { archive, default: kept, workflows, batch, interval_s: seconds } = config.settings.tape.retention;
  if (archive === undefined) return undefined;
  if (Object.hasOwn(config.settings.tape.reactors, "retention")) {
    const message = "tape.reactors.retention: the name belongs to the reactor of tape.retention; choose another";
    throw new TapeError("TAPE_BAD_CONFIG", message, { reactor: "retention" });
  }
  return {
    archive: await configuredArchive(archive, folderOf(config, key, cwd)),
    ...(kept !== undefined && { default: kept as Duration }),
    workflows: workflows as Record<string, Duration>,
    batch,
    interval: Math.ceil(seconds * 1_000),
  };
}

/** A folder relative to the configuration, or what the user's function returns. */
async function configuredArchive(archive: string, folder: string): Promise<string | Archive> {
  if (archive.startsWith("file:")) return `file:${resolve(folder, archive.slice("file:".length))}`;
  const build = await loadFunction(archive, folder, `${key}: archive`);
  return (await build()) as Archive;
}
