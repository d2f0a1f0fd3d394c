import type { OwnerResolver, ServerCallContext } from "@a2a-js/sdk/server";
import { resolveUserScope } from "@a2a-js/sdk/server";
import { assertKnownKeys, assertName, functionOr } from "../sdk/validate.ts";
import { part } from "../store/value-keys.ts";

/** Where the tasks of an agent are kept, and who sees them. */
export interface TaskScopeOptions {
  /** The first part of keys and of the ids of runs; default `a2a`. Agents with different ones do not see each other. */
  readonly prefix?: string;
  /** Whose tasks a caller sees. Default: the name of the authenticated user; callers without one share their tasks. */
  readonly owner?: OwnerResolver;
}

/** The keys of tasks. Each caller has a range of its own: tenant of the protocol, then owner. */
export class TaskScope {
  readonly prefix: string;
  readonly #owner: OwnerResolver;

  constructor(what: string, { prefix = "a2a", owner = resolveUserScope }: TaskScopeOptions) {
    assertName(`${what}: prefix`, prefix);
    functionOr(what, "owner", owner);
    this.prefix = part(prefix);
    this.#owner = owner;
  }

  ownerOf(context: ServerCallContext): string {
    return this.#owner(context);
  }

  /** Also the label of the caller's runs. */
  of(context: ServerCallContext): string {
    return `${part(context.tenant ?? "")}/${part(this.#owner(context))}`;
  }

  key(kind: "tasks" | "push", context: ServerCallContext, taskId: string): string {
    return `${this.prefix}/${kind}/${this.of(context)}/${part(taskId)}`;
  }

  runOf(taskId: string): string {
    return `${this.prefix}/${part(taskId)}`;
  }
}

export function checkedScope(what: string, options: TaskScopeOptions): TaskScope {
  assertKnownKeys(what, options, ["prefix", "owner"]);
  return new TaskScope(what, options);
}
