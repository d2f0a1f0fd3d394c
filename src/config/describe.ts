import { describeOrigin, flatten, type LoadedConfig } from "./load.ts";
import { maskUrl } from "./mask.ts";

export interface DescribedSetting {
  readonly path: string;
  readonly value: unknown;
  /** `default`, `tape.yaml:4:7`, the variable, or the flag. */
  readonly origin: string;
  /** Variables that `${…}` put into it. */
  readonly variables: readonly string[];
}

/** Every setting with its origin, fit to be printed: the password in a store's URL is masked. */
export function describeConfig({ settings, origins }: LoadedConfig): DescribedSetting[] {
  return flatten(settings).map(([path, value]) => {
    const origin = origins.get(path) ?? { from: "default" };
    return {
      path,
      value: path === "tape.store.url" ? maskUrl(String(value)) : value,
      origin: describeOrigin(origin),
      variables: origin.from === "file" ? origin.variables : [],
    };
  });
}
