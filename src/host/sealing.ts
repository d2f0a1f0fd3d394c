import type { Log } from "../base/log.ts";
import type { Tracer } from "../base/trace.ts";
import { quietLog, quietTracer } from "../seal/quiet-log.ts";
import { isSealedStore, type SealOptions, sealedStore } from "../seal/sealed-store.ts";
import type { Store } from "../store/contract/store.ts";

/** The store as this process sees it: behind the codec and the redaction, if it has any. */
export const sealedFor = (store: Store, options: SealOptions): Store =>
  options.codec === undefined && options.redact === undefined ? store : sealedStore(store, options);

/** The store with payloads as it has them, for what leaves this process. */
export const unsealed = (store: Store): Store => (isSealedStore(store) ? store.sealed.inner : store);

/** With a codec, no payload may leave the process in a log line either. */
export const quietFor = ({ codec }: SealOptions, log: Log): Log => (codec === undefined ? log : quietLog(log));

export const tracingFor = <O extends SealOptions & { readonly tracing?: Tracer }>(options: O): O =>
  options.codec === undefined || options.tracing === undefined
    ? options
    : { ...options, tracing: quietTracer(options.tracing) };
