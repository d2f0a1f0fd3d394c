import { TaskPushNotificationConfig } from "@a2a-js/sdk";
import { RequestMalformedError } from "@a2a-js/sdk/errors";
import type { PushNotificationStore, ServerCallContext, StoredPushNotificationConfig } from "@a2a-js/sdk/server";
import { systemRandom } from "../base/random.ts";
import type { ValuesOf } from "../store/value-keys.ts";
import { updateValue } from "../store/values.ts";
import { checkedScope, type TaskScope, type TaskScopeOptions } from "./scope.ts";

interface StoredConfig {
  /** In the protocol's JSON. */
  readonly config: { readonly id?: string };
  readonly wireVersion: string;
}

/** Configurations of one task. */
const maxConfigs = 100;

/**
 * Push notification configurations as values of a store: any process finds them. They have credentials of the client,
 * which a payload codec of the app encrypts.
 */
export class TapePushNotificationStore implements PushNotificationStore {
  readonly #of: ValuesOf;
  readonly #scope: TaskScope;

  /** Where the values are, and whose they are. */
  constructor(of: ValuesOf, options: TaskScopeOptions = {}) {
    this.#of = of;
    this.#scope = checkedScope("TapePushNotificationStore", options);
  }

  /** Stores a configuration of a task. */
  async save(taskId: string, context: ServerCallContext, config: TaskPushNotificationConfig): Promise<void> {
    config.id ||= systemRandom.uuid();
    const entry: StoredConfig = {
      config: TaskPushNotificationConfig.toJSON(config) as StoredConfig["config"],
      wireVersion: context.requestedVersion,
    };
    await this.#change(taskId, context, (all) => {
      const others = all.filter((one) => one.config.id !== config.id);
      if (others.length < maxConfigs) return [...others, entry];
      throw new RequestMalformedError(`A task has at most ${maxConfigs} push notification configs.`);
    });
  }

  /** The configurations of a task. */
  async load(taskId: string, context: ServerCallContext): Promise<TaskPushNotificationConfig[]> {
    return (await this.loadWithMetadata(taskId, context)).map(({ config }) => config);
  }

  /** The same, with their owners. */
  async loadWithMetadata(taskId: string, context: ServerCallContext): Promise<StoredPushNotificationConfig[]> {
    const found = await this.#of.store.read.value(this.#of.tenant, this.#scope.key("push", context, taskId));
    const all = found === undefined || found.deleted ? [] : (found.value as readonly StoredConfig[]);
    return all.map(({ config, wireVersion }) => ({ config: TaskPushNotificationConfig.fromJSON(config), wireVersion }));
  }

  /** Deletes one of them. */
  async delete(taskId: string, context: ServerCallContext, configId = taskId): Promise<void> {
    await this.#change(taskId, context, (all) => {
      const others = all.filter(({ config }) => config.id !== configId);
      return others.length === all.length ? undefined : others;
    });
  }

  async #change(
    taskId: string,
    context: ServerCallContext,
    change: (all: readonly StoredConfig[]) => readonly StoredConfig[] | undefined,
  ): Promise<void> {
    const key = this.#scope.key("push", context, taskId);
    const { store, tenant } = this.#of;
    await updateValue(store, tenant, key, (current) => change((current as readonly StoredConfig[] | undefined) ?? []));
  }
}
