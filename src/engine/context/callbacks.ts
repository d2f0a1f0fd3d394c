import { callbackToken } from "../../model/callback-token.ts";
import { TapeError } from "../../model/errors.ts";
import type { NewRecord, RecordData } from "../../model/records.ts";
import type { GateAnswer } from "../../sdk/context.ts";
import { currentSite } from "../../sdk/current.ts";
import type { Callback, CallbackOptions } from "../../sdk/talk.ts";
import { assertKnownKeys, assertName, booleanOr } from "../../sdk/validate.ts";
import type { Note } from "../replay/history.ts";
import { gateAnswer, isTimeout, milliseconds } from "./gates.ts";
import { type Operations, unwrap } from "./operations.ts";
import type { Scope } from "./scope.ts";

/** The callbacks of one run. Their tokens follow from a secret that the store gives to the run's holder. */
export class Callbacks {
  readonly #ops: Operations;
  #secret: string | undefined;

  constructor(ops: Operations) {
    this.#ops = ops;
  }

  /** Reads the secret. A replay needs it before the first result, so that results keep their order. */
  async load(): Promise<void> {
    const { store, lease } = this.#ops.drive.options;
    this.#secret ??= await store.claim.callbackSecret(lease.fence);
  }

  open<T>(name: string, options: CallbackOptions): Promise<Callback<T>> {
    assertName("tape.callback: the callback", name);
    const subject = `callback ${name}`;
    assertKnownKeys(subject, options, ["timeout", "raw"]);
    booleanOr(subject, "raw", options.raw);
    const timeoutMs = options.timeout === undefined ? undefined : milliseconds(subject, "timeout", options.timeout);
    const scope = this.#ops.scopeAt(currentSite());
    return this.#ops.operation<Callback<T>>({
      kinds: ["gate.opened", "step.done"],
      name,
      result: ({ record }) => {
        unwrap(record.data as RecordData<"step.done">);
        return this.#handle(name, (record.data as RecordData<"gate.opened">).pos, scope);
      },
      begin: (handle) => {
        const { pos } = handle;
        const data: RecordData<"gate.opened"> = {
          ...{ pos, name, callback: options.raw === true ? "raw" : "json" },
          ...(timeoutMs !== undefined && { timeoutMs }),
        };
        this.#loaded(() => handle.end({ kind: "gate.opened", data }, this.#handle<T>(name, pos, scope)));
      },
    });
  }

  /** Calls `then` once the secret is known. Until then the drive does not park. */
  #loaded(then: () => void): void {
    const { drive } = this.#ops;
    if (this.#secret !== undefined) {
      then();
      return;
    }
    drive.activeBodies++;
    void this.load()
      .then(
        () => {
          if (!drive.finished) then();
        },
        (error: unknown) => drive.fail(error),
      )
      .finally(() => {
        drive.activeBodies--;
        drive.parkIfIdle();
      });
  }

  #handle<T>(name: string, pos: number, scope: Scope | undefined): Callback<T> {
    const ops = this.#ops;
    if (ops.drive.history.byPos.get(pos)?.some(({ kind }) => kind === "gate.resolved") !== true)
      scope?.callbacks.add(pos);
    const { publicUrl, lease } = ops.drive.options;
    const token = callbackToken(this.#secret!, { journal: lease.term.journal, pos });
    let result: Promise<GateAnswer<T>> | undefined;
    return {
      token,
      get url() {
        if (publicUrl !== undefined) return `${publicUrl}/v1/callbacks/${token}`;
        const message = `callback ${name} has no address: the server's public address is not set`;
        throw new TapeError("TAPE_NO_PUBLIC_URL", message, { name });
      },
      // One operation for all calls: the gate is resolved once.
      result: () => {
        result ??= ops.operation<GateAnswer<T>>(
          {
            kinds: ["gate.resolved"],
            name,
            result: ({ record }) => gateAnswer<T>(record.data as RecordData<"gate.resolved">),
            begin: (handle) =>
              ops.wait(handle, {
                about: `callback ${name}`,
                match: (note) => {
                  const resolved = resolvedBy(note, pos);
                  if (resolved !== undefined) scope?.callbacks.delete(pos);
                  return resolved;
                },
                resultOf: (record) => gateAnswer<T>(record.data as RecordData<"gate.resolved">),
              }),
          },
          { known: pos, scope },
        );
        return result;
      },
    };
  }
}

/** Only the token's signal, or the time-out, ends the wait. */
function resolvedBy(note: Note, pos: number): NewRecord | undefined {
  if (isTimeout(note, pos)) return { kind: "gate.resolved", data: { pos, to: "TIMED_OUT" } };
  if (note.kind !== "signal.sent" || note.data.pos !== pos) return undefined;
  return { kind: "gate.resolved", data: { pos, to: "RECEIVED", value: note.data.value, note: note.seq } };
}
