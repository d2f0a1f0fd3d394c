export { ManualClock } from "../testing/clock.ts";
export { type Fixture, storeConformance, type TestApi } from "../testing/conformance/index.ts";
export { faultyStore } from "../testing/faults.ts";
export { checkLinearizable } from "../testing/linearizable.ts";
export { checkProjection } from "../testing/projection.ts";
