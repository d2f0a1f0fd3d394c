import type { Credential } from "../../model/records.ts";
import type { Page } from "./list.ts";

/** What a run shows and answers, called as `store.read.x`. Needs no worker, also after the end of the run. */
export interface TalkReadOps {
  /** By name, after `above`; with `name` only that one. Empty also for a run that does not exist. */
  published(
    tenant: string,
    run: string,
    page?: { name?: string; above?: string; limit?: number },
  ): Promise<Page<PublishedValue>>;
  /** The reply to note `n` of the run's inbox; undefined: there is none yet, or no such note or run. */
  reply(tenant: string, run: string, n: number): Promise<Reply | undefined>;
}

/** Called as `store.intake.x`. */
export interface TalkWriteOps {
  /**
   * Opens the gate that a callback's token names, once: later calls get `duplicate: true`. TAPE_NOT_FOUND for a token
   * that this store did not issue, and for a gate that no longer waits. With `tenant` only a run of this tenant.
   */
  deliver(tenant: string | undefined, token: string, body: CallbackBody): Promise<{ readonly duplicate: boolean }>;
}

/** The latest value that a run has published under a name. */
export interface PublishedValue {
  readonly name: string;
  readonly value: unknown;
  /** The record that published it: grows with each value of the run. */
  readonly seq: number;
  readonly at: number;
}

/** The reply to a request: a value, the error of a rejection, or why the value does not match the gate's schema. */
export interface Reply {
  /** The number of the note that it answers. */
  readonly n: number;
  readonly at: number;
  readonly value?: unknown;
  /** The error of a rejection. */
  readonly error?: unknown;
  /** Why the value does not match the gate. */
  readonly refused?: string;
}

/** What a callback brings. The gate decides which of the two its code receives. */
export interface CallbackBody {
  /** The body's value; absent: it has none, because it is not JSON. */
  readonly value?: unknown;
  /** The body and headers as they arrived. */
  readonly raw?: { readonly body: string; readonly headers: Readonly<Record<string, string>> };
}

/** A signal that a start sends with its run. The key makes it one signal, however often the start is repeated. */
export interface StartSignal {
  readonly name: string;
  readonly value: unknown;
  /** Names the signal, so that a repeated start sends it once. */
  readonly key: string;
  /** The call that an approval is bound to. */
  readonly binds?: string;
  /** The name of the sender. */
  readonly by?: string;
  /** The credential of the sender. */
  readonly via?: Credential;
}
