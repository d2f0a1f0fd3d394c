export { ManualClock } from "./clock.ts";
export {
  type CallerConnection,
  type CallerFixture,
  type StoreFixture,
  storeConformance,
  type TestRunner,
} from "./conformance/index.ts";
export { faultyStore } from "./faults.ts";
export { type CrashReport, crashAtEveryBoundary } from "./kit/crash.ts";
export type { CrashMode, CrashOptions } from "./kit/crash-options.ts";
export type { CrashRound } from "./kit/round.ts";
export type { BodyCall } from "./kit/runner.ts";
export { type VirtualOptions, VirtualTape } from "./kit/virtual-tape.ts";
export { VirtualTime } from "./kit/virtual-time.ts";
export { type RequestFault, type WorldCaller, WorldLedger, type WorldRequest } from "./kit/world.ts";
export { checkLinearizable } from "./linearizable.ts";
export { checkProjection } from "./projection.ts";
