import { strict as assert } from "node:assert";
import type { Term } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import type { Store } from "../../src/store/contract/store.ts";
import type { PastClock } from "./past-clock.ts";
import { done, type Scene, tenant } from "./scene.ts";

export const booking = (pos: number, name: string, args: object) => ({
  intended: done("effect.intended", {
    ...{ pos, name, semantics: "idempotent", dispatch: "inline", key: `${name}:${pos}`, argsHash: "h", args },
  }),
  sent: done("effect.dispatched", { pos, attempt: 1, sendWithinMs: 10_000 }),
  booked: done("effect.settled", { pos, to: "CONFIRMED", reason: "returned", value: { ref: `${name}-1` } }),
  armed: done("obligation.armed", {
    ...{ pos, sub: 1, name, semantics: "idempotent", key: `${name}:${pos}:compensation` },
    args: { args, result: { ref: `${name}-1` } },
  }),
});

/** A trip that finds no car: its child, which booked the hotel, and the trip itself are compensated, newest first. */
export async function sagaOf(scene: Scene, store: Store, clock: PastClock): Promise<void> {
  const [id, hotel] = ["trip-204", "trip-204.1"];
  const flight = booking(0, "flight.book", { from: "VIE", to: "LIS" });
  const term = await scene.begin(id, "trip", "worker-a", { budget: { usd: 5_000_000 } });
  clock.elapse(700);
  await scene.write(
    term,
    ...[flight.intended, flight.sent, flight.booked, flight.armed],
    done("child.started", { pos: 1, id: hotel, workflow: "hotel", input: { nights: 3 }, inputHash: "h" }),
    done("term.ended", { reason: "released", notesTaken: 0 }),
  );
  await child(scene, hotel, term.journal, clock);
  const woken = await scene.acquire({ run: id }, "worker-b", "free", { reason: "wake" });
  clock.elapse(400);
  const car = booking(3, "car.book", { class: "B" });
  await scene.write(
    woken,
    done("notes.taken", { through: 1 }),
    done("child.received", { pos: 2, childPos: 1, status: "COMPLETED", outcome: { ref: "hotel.book-1" } }),
    ...[car.intended, car.sent],
    done("effect.settled", { pos: 3, to: "FAILED", reason: "definite", error: { message: "no car left" } }),
    done("run.decided", { cause: "failed", outcome: { error: "no car left" } }),
    done("run.compensating", {}),
    done("term.ended", { reason: "released", notesTaken: 1 }),
  );
  clock.elapse(900);
  await compensate(scene, store, hotel, (ref) => [
    done("effect.dispatched", { ...ref, attempt: 1, sendWithinMs: 10_000 }),
    done("obligation.settled", { ...ref, to: "COMPENSATED", reason: "returned" }),
    done("term.ended", { reason: "released", notesTaken: 0 }),
  ]);
  clock.elapse(300);
  const resumed = await scene.acquire({ run: id }, "worker-a", "free", { reason: "wake" });
  await scene.write(
    resumed,
    done("notes.taken", { through: 2 }),
    done("term.ended", { reason: "released", notesTaken: 2 }),
  );
  clock.elapse(600);
  await compensate(scene, store, id, (ref) => [
    done("effect.dispatched", { ...ref, attempt: 1, sendWithinMs: 10_000 }),
  ]);
}

async function child(scene: Scene, id: string, parent: number, clock: PastClock): Promise<void> {
  const term: Term = await scene.acquire({ run: id }, "worker-b", "free");
  clock.elapse(1_100);
  const room = booking(0, "hotel.book", { nights: 3 });
  await scene.write(
    term,
    ...[room.intended, room.sent, room.booked, room.armed],
    done("run.ended", {
      ...{
        status: "COMPLETED",
        outcome: { ref: "hotel.book-1" },
        notesTaken: 0,
        parent: { journal: parent, pos: 1, id },
      },
    }),
  );
}

type Ref = { readonly run: number; readonly pos: number; readonly sub: number };

async function compensate(
  scene: Scene,
  store: Store,
  run: string,
  records: (ref: Ref) => readonly NewRecord[],
): Promise<void> {
  const [obligation] = await store.read.effects(tenant, { run, role: "compensation" });
  assert.ok(obligation?.item);
  const more = { reactor: "compensation", ttlMs: 7_200_000 };
  const term = await scene.acquire({ journal: obligation.item }, "worker-b", "free", more);
  await scene.write(term, ...records({ run: obligation.run, pos: obligation.pos, sub: obligation.sub }));
}
