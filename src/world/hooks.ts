import { HookNotFoundError } from "@workflow/errors";
import type { Hook, ListHooksParams, Storage } from "@workflow/world";
import { valuesUnder } from "../store/value-keys.ts";
import { liveHook } from "./entities.ts";
import type { HookTokens } from "./hook-tokens.ts";
import { pageIn, pageRequest, textOf } from "./paging.ts";
import type { RunLogs, WorldDeps } from "./run-log.ts";

type Resolve = { readonly resolveData?: "none" | "all" | undefined };

/** `world.hooks`: the live hooks of runs. One that is disposed, or whose run has ended, is not found. */
export class WorldHooks implements Pick<Storage["hooks"], "get" | "getByToken" | "list"> {
  readonly #deps: WorldDeps;
  readonly #logs: RunLogs;
  readonly #tokens: HookTokens;

  constructor(deps: WorldDeps, logs: RunLogs, tokens: HookTokens) {
    this.#deps = deps;
    this.#logs = logs;
    this.#tokens = tokens;
  }

  async get(id: string, params: Resolve = {}): Promise<Hook> {
    const { store, tenant, keys } = this.#deps;
    const found = await store.read.value(tenant, keys.hook(textOf("hookId", id)));
    const hook = found === undefined ? undefined : await this.#live(found.value as { run: string; hook: string });
    if (hook === undefined) throw new HookNotFoundError(id);
    return shown(hook, params);
  }

  async getByToken(token: string, params: Resolve = {}): Promise<Hook> {
    const claim = await this.#tokens.claimOf(textOf("token", token));
    const hook = claim === undefined ? undefined : await this.#live(claim);
    if (hook === undefined) throw new HookNotFoundError(token);
    return shown(hook, params);
  }

  async list({ runId, pagination, ...params }: ListHooksParams = {}) {
    const request = pageRequest(pagination);
    if (runId !== undefined) {
      const state = await this.#logs.state(textOf("runId", runId));
      return pageIn([...state.hooks.keys()], request, (id) => {
        const hook = liveHook(state, id);
        return hook === undefined ? undefined : shown(hook, params);
      });
    }
    const { keys } = this.#deps;
    const { limit, order, cursor } = request;
    const above = cursor === undefined ? {} : { above: keys.hook(cursor) };
    const data: Hook[] = [];
    let last: string | null = null;
    for await (const { value } of valuesUnder(this.#deps, keys.hooks(), { order, ...above })) {
      if (data.length === limit) return { data, cursor: last, hasMore: true };
      const hook = await this.#live(value as { run: string; hook: string });
      if (hook === undefined) continue;
      data.push(shown(hook, params));
      last = hook.hookId;
    }
    return { data, cursor: last, hasMore: false };
  }

  async #live({ run, hook }: { readonly run: string; readonly hook: string }): Promise<Hook | undefined> {
    return liveHook(await this.#logs.state(run), hook);
  }
}

const shown = (hook: Hook, { resolveData = "all" }: Resolve): Hook =>
  resolveData === "none" ? { ...hook, metadata: undefined } : { ...hook };
