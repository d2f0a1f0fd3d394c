import type { RecordData } from "../../model/records.ts";
import type { DriveHandle } from "../core/handle.ts";
import type { Operation, OperationHandle } from "../core/operation.ts";

/** Their bodies make the call that the reservation is for. An effect has records of its attempts. */
const withBody: ReadonlySet<string> = new Set(["step.done", "decision.made"]);

/**
 * A call of `budget.spend`, from its reservation to its charge. A term that was lost after the call's last record may
 * have started the body that comes next, and its cost is unknown: before the body runs again, the estimate is charged as
 * presumed. The record is durable before the body starts, so every further lost term adds one. A call that is made in
 * the term of its reservation writes nothing more.
 */
export class OpenSpend {
  readonly of: DriveHandle;
  readonly #presumed: RecordData<"budget.presumed">;
  /** The number of the call's last record; Infinity: this term has written one, so no other term started what follows. */
  #lastSeq: number;

  /** `reservedSeq`: undefined if this term has made the reservation. */
  constructor(drive: DriveHandle, presumed: RecordData<"budget.presumed">, reservedSeq: number | undefined) {
    this.of = drive;
    this.#presumed = presumed;
    this.#lastSeq = reservedSeq ?? Number.POSITIVE_INFINITY;
  }

  /** The operation as part of this call. `settled`: the code has its result. */
  meter<T>(operation: Operation<T>): { readonly operation: Operation<T>; readonly settled: () => void } {
    let live = false;
    return {
      operation: {
        ...operation,
        result: (delivery) => {
          this.#lastSeq = Math.max(this.#lastSeq, delivery.seq);
          return operation.result(delivery);
        },
        begin: (handle) => {
          live = true;
          if (withBody.has(operation.kinds[0]!) && this.#mayBeLost()) this.#presume(operation, handle);
          else operation.begin(handle);
        },
      },
      settled: () => {
        if (live) this.#lastSeq = Number.POSITIVE_INFINITY;
      },
    };
  }

  #mayBeLost(): boolean {
    const { history } = this.of;
    const { pos, amounts } = this.#presumed;
    if (Object.keys(amounts).length === 0) return false; // nothing was reserved, or a fork has kept the reservation
    const presumed = history.byPos.get(pos)?.findLast(({ kind }) => kind === "budget.presumed")?.seq ?? 0;
    return history.lostSeq > Math.max(this.#lastSeq, presumed);
  }

  /** Counted among the active bodies: a run that parked meanwhile would not be woken. */
  #presume<T>(operation: Operation<T>, handle: OperationHandle<T>): void {
    const drive = this.of;
    this.#lastSeq = Number.POSITIVE_INFINITY;
    drive.activeBodies++;
    const written = (): void => {
      drive.activeBodies--;
      if (drive.finished || drive.cancelRequested) {
        drive.parkIfIdle();
        return;
      }
      try {
        operation.begin(handle);
      } catch (error) {
        handle.reject(error);
      }
    };
    drive.journal.enqueue([{ kind: "budget.presumed", data: this.#presumed }], written, (error) => drive.fail(error));
  }
}
