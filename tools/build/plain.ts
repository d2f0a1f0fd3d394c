import type { ReactorSettings } from "../../src/config/schema.ts";
import type { Approvers } from "../../src/model/approvers.ts";
import type { Credential } from "../../src/model/credential.ts";
import type { Fence } from "../../src/model/fence.ts";
import type { ForkData } from "../../src/model/fork-shape.ts";
import type { RecordData, RecordKind } from "../../src/model/records.ts";
import type { SchedulePlan } from "../../src/model/schedule.ts";
import type { CallOf, ResponseOf, RouteName } from "../../src/protocol/contract.ts";

/**
 * Types that the sources derive from zod's schemas, and that are published without zod. The compiler expands them here,
 * and the declarations of the package use the expanded form (declarations.ts). A type with a parameter is expanded to an
 * object with one property for each value of the parameter.
 */
export const writtenOut = {
  "config/schema": { ReactorSettings: plain<ReactorSettings>() },
  "model/approvers": { Approvers: plain<Approvers>() },
  "model/credential": { Credential: plain<Credential>() },
  "model/fork-shape": { ForkData: plain<ForkData>() },
  "model/records": { RecordKind: plain<RecordKind>(), RecordData: plain<Records>() },
  "model/schedule": { SchedulePlan: plain<SchedulePlan>() },
  "protocol/contract": { RouteName: plain<RouteName>(), CallOf: plain<Calls>(), ResponseOf: plain<Responses>() },
};

type Records = { [K in RecordKind]: RecordData<K> };
type Calls = { [N in RouteName]: CallOf<N> };
type Responses = { [N in RouteName]: ResponseOf<N> };

/** Expanded down to nominal types. */
type Plain<T> = T extends Fence | Uint8Array
  ? T
  : T extends object
    ? T extends infer O
      ? { [K in keyof O]: Plain<O[K]> }
      : never
    : T;

/** The expanded type must be the same type: each is assignable to the other. */
type Faithful<T> = [T, Plain<T>] extends [Plain<T>, T] ? [] : ["the expansion lost something"];

/** Only its type is used. */
function plain<T>(..._: Faithful<T>): Plain<T> {
  throw new Error("plain() exists only for its type");
}
