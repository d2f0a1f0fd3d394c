import type { Evidence } from "../../simulation/evidence.ts";
import type { PlannedSink } from "../../simulation/plan-sinks.ts";
import type { SinkEvidence } from "../../simulation/world-sink.ts";

/** The receiver of the eventful world: it refuses every event of a step. */
export const eventfulSink: PlannedSink = {
  ...{ from: "start", lanes: 2, window: 20, travelMs: 5, slowMs: 0, lossShare: 0, poisonEvery: 1, outage: undefined },
};

const changed = (world: Evidence, change: (sink: SinkEvidence) => Partial<SinkEvidence>): Evidence => ({
  ...world,
  sink: { ...world.sink!, ...change(world.sink!) },
});

/** For each invariant of sinks, a change of the evidence that breaks it. */
export const spoiledSinks: Readonly<Record<string, (world: Evidence) => Evidence>> = {
  eventsAreComplete: (world) =>
    changed(world, ({ arrivals }) => {
      const first = arrivals.find(({ what }) => what === "received")!;
      return { arrivals: arrivals.filter(({ id }) => id !== first.id) };
    }),
  eventsAreInOrder: (world) => changed(world, ({ arrivals }) => ({ arrivals: arrivals.toReversed() })),
  repeatsAreBounded: (world) => {
    const changes = changed(world, ({ arrivals, plan }) => ({
      plan: { ...plan, window: 0 },
      arrivals: [...arrivals, { ...arrivals.find(({ what }) => what === "received")!, token: 999n }],
    }));
    return { ...changes, faultHits: [] };
  },
  deadLettersAreTrue: (world) =>
    changed(world, ({ letters, arrivals }) => {
      const received = arrivals.find(({ what }) => what === "received")!;
      return { letters: [{ ...letters[0]!, event: received.id }] };
    }),
  checkpointsAreFenced: (world) => ({
    ...world,
    checkpoints: [...world.checkpoints, { ...world.checkpoints[0]!, token: 0n }],
  }),
  eventIdsAreUnique: (world) =>
    changed(world, ({ arrivals }) => ({ arrivals: [...arrivals, { ...arrivals[0]!, recordedAt: 1 }] })),
  storeRests: (world) => changed(world, () => ({ writtenAtRest: 1 })),
};
