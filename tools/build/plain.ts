import type { Approvers } from "../../src/model/approvers.ts";
import type { Credential } from "../../src/model/credential.ts";
import type { Fence } from "../../src/model/fence.ts";
import type { ForkData, RecordData, RecordKind } from "../../src/model/records.ts";
import type { SchedulePlan } from "../../src/model/schedule.ts";
import type { CallOf, ResponseOf, RouteName } from "../../src/protocol/contract.ts";

/**
 * Types that the sources derive from zod's schemas, and that are published without zod: the compiler writes out here
 * what they come to, and the declarations of the package take it from here (declarations.ts). A type with a parameter
 * is written out as an object, by the names that its parameter can be.
 */
export const writtenOut = {
  "model/approvers": { Approvers: plain<Approvers>() },
  "model/credential": { Credential: plain<Credential>() },
  "model/records": { RecordKind: plain<RecordKind>(), RecordData: plain<Records>(), ForkData: plain<ForkData>() },
  "model/schedule": { SchedulePlan: plain<SchedulePlan>() },
  "protocol/contract": { RouteName: plain<RouteName>(), CallOf: plain<Calls>(), ResponseOf: plain<Responses>() },
};

type Records = { [K in RecordKind]: RecordData<K> };
type Calls = { [N in RouteName]: CallOf<N> };
type Responses = { [N in RouteName]: ResponseOf<N> };

/** Written out down to types that mean more than their shape. */
type Plain<T> = T extends Fence | Uint8Array
  ? T
  : T extends object
    ? T extends infer O
      ? { [K in keyof O]: Plain<O[K]> }
      : never
    : T;

/** What is written out must be the same type: each can be used for the other. */
type Faithful<T> = [T, Plain<T>] extends [Plain<T>, T] ? [] : ["something was lost in writing it out"];

/** Only its type is ever asked for. */
function plain<T>(..._: Faithful<T>): Plain<T> {
  throw new Error("there is nothing to run here");
}
