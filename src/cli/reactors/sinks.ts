import type { Log } from "../../base/log.ts";
import { suggest } from "../../base/suggest.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { FanoutOptions } from "../../events/options.ts";
import type { EventHandler } from "../../events/sinks/function.ts";
import { assertClient } from "../../host/broker-sinks.ts";
import { configuredFanout } from "../../host/configured-sinks.ts";
import { TapeError } from "../../model/errors.ts";
import { folderOf } from "../store-settings.ts";
import { loadFunction } from "./module.ts";

/** In `--only`, a sink is named like this; `sink-*` names all of them. */
const prefix = "sink-";

/** What `--only` selects: reactors, and sinks without the prefix. */
export interface Selection {
  readonly reactors: readonly string[] | undefined;
  readonly sinks: readonly string[] | undefined;
}

export function selectionOf(only: readonly string[] | undefined): Selection {
  if (only === undefined) return { reactors: undefined, sinks: undefined };
  const sinks = only.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  return { reactors: only.filter((name) => !name.startsWith(prefix)), sinks };
}

/** The fan-outs to run, with their handlers loaded: a handler that cannot be loaded fails the start. */
export async function chosenSinks(
  config: LoadedConfig,
  only: readonly string[] | undefined,
  cwd: string,
  log: Log,
): Promise<FanoutOptions[]> {
  const { sinks } = config.settings.tape.events;
  const names = Object.keys(sinks);
  for (const name of only ?? []) {
    if (name === "*" || Object.hasOwn(sinks, name)) continue;
    const near = suggest(name, names);
    const hint = near === undefined ? `; the sinks are ${names.join(", ") || "none"}` : `; did you mean ${near}?`;
    throw new TapeError("TAPE_BAD_CONFIG", `--only: unknown sink ${name}${hint}`, { name });
  }
  const isChosen = (name: string, enabled: boolean): boolean =>
    only === undefined || (only.includes("*") && !only.includes(name)) ? enabled : only.includes(name);
  const chosen = Object.entries(sinks).filter(([name, { enabled }]) => isChosen(name, enabled));
  return Promise.all(
    chosen.map(async ([name, settings]) => {
      const { handler: reference } = settings;
      await assertClient(settings.kind);
      const path = `tape.events.sinks.${name}.handler`;
      const handler = reference && (await loadFunction(reference, folderOf(config, path, cwd), `${path}: handler`));
      return configuredFanout(name, settings, (handler || undefined) as EventHandler | undefined, log);
    }),
  );
}
