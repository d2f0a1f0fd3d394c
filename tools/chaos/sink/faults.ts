import { systemClock } from "../../../src/base/clock.ts";
import type { Random } from "../../../src/base/random.ts";
import { anyOf, type Fault, type Injection } from "../fault.ts";
import type { Replica } from "../replicas.ts";
import type { ReceiverHandle } from "./receiver.ts";
import type { Trouble } from "./receiver-messages.ts";

export interface SinkDeployment {
  readonly fanouts: readonly Replica[];
  readonly writers: readonly Replica[];
  readonly receiver: ReceiverHandle;
  readonly ttlMs: number;
  /** How long a request of a fan-out may take. */
  readonly sendMs: number;
  readonly random: Random;
  readonly injections: Injection[];
  /** The holder of the sink's lease, by its label. */
  holder(): Promise<string | undefined>;
  /** Counts a fan-out that is gone, or was stopped for so long that another may have taken over. */
  died(): void;
  repair(work: Promise<void>): void;
}

export const killFanoutKind = "kill -9 of a fan-out in mid-send";
export const stopFanoutKind = "SIGSTOP of a fan-out in mid-send, past its TTL";
export const killWriterKind = "kill -9 of a worker that writes runs";
const troubles: Readonly<Record<Exclude<Trouble, "none">, readonly [kind: string, when: string]>> = {
  down: ["receiver down", "it closed its port while a fan-out held the sink"],
  errors: ["receiver answers 500", "it answered a request with 500"],
  hole: ["receiver is a black hole", "a request got no answer until its time-out"],
  lost: ["answers of the receiver lost", "it had entered a batch whose answer was cut off"],
};

/** How long a fault waits for a request; after trouble a lane may be in its back-off. */
const requestMs = 8_000;
const takeoverMs = 20_000;
const checkMs = 25;

export function sinkFaults(deployment: SinkDeployment): Fault[] {
  return [
    midSend(deployment, "kill"),
    midSend(deployment, "stop"),
    ...(["errors", "lost", "down", "hole"] as const).map((trouble) => receiverFault(deployment, trouble)),
    writerFault(deployment),
  ];
}

/** Hits a fan-out whose batch is at the receiver: not entered yet, or entered and not answered. */
function midSend(deployment: SinkDeployment, how: "kill" | "stop"): Fault {
  const { fanouts, receiver, random, injections, repair } = deployment;
  const kind = how === "kill" ? killFanoutKind : stopFanoutKind;
  let drawn = 0;
  return {
    kind,
    effectiveWhen:
      how === "kill"
        ? "its batch was at the receiver, unanswered"
        : "its batch was at the receiver, unanswered, and another fan-out had delivered under a higher token before it woke up",
    weight: 3,
    initial: 2,
    async inject() {
      if (fanouts.filter(({ up }) => up).length < 2) return;
      const stage = drawn++ % 2 === 0 ? "before" : "after";
      const request = await receiver.hold(stage, requestMs);
      const replica = fanouts.find(({ label, up }) => up && label === request?.worker);
      if (request === undefined || replica === undefined) {
        if (request !== undefined) receiver.release(request.hold);
        return;
      }
      const { highest } = receiver;
      deployment.died();
      if (how === "kill") replica.kill();
      else replica.pause();
      const tail = async (): Promise<void> => {
        const isSucceeded = await successor(deployment, highest);
        receiver.release(request.hold); // a batch from before arrives behind the successor's
        if (how === "kill") await replica.start();
        else {
          await systemClock.sleep(random.int(300));
          replica.wake();
        }
        injections.push({
          kind,
          effective: how === "kill" || isSucceeded,
          hit: [stage === "before" ? "before its batch was entered" : "after its batch was entered"],
          outcome: [isSucceeded ? "another took over" : "no other took over in time"],
        });
      };
      repair(tail());
    },
  };
}

/** Waits until a fan-out has delivered under a higher token. */
async function successor({ receiver, ttlMs }: SinkDeployment, than: bigint): Promise<boolean> {
  const until = systemClock.mono() + ttlMs + takeoverMs;
  while (receiver.highest <= than) {
    if (systemClock.mono() > until) return false;
    await systemClock.sleep(checkMs);
  }
  return true;
}

/** Lets the receiver fail for a while, then repairs it. */
function receiverFault(deployment: SinkDeployment, trouble: Exclude<Trouble, "none">): Fault {
  const { receiver, sendMs, random, injections } = deployment;
  const [kind, effectiveWhen] = troubles[trouble];
  return {
    kind,
    effectiveWhen,
    weight: 1,
    async inject() {
      const before = receiver.troubled[trouble] ?? 0;
      const holder = await deployment.holder();
      await receiver.behave(trouble);
      await systemClock.sleep(trouble === "hole" ? sendMs + 200 : 400 + random.int(1_200));
      await receiver.behave("none");
      const requests = (receiver.troubled[trouble] ?? 0) - before;
      injections.push({
        kind,
        effective: trouble === "down" ? holder !== undefined : requests > 0,
        hit:
          trouble === "down" ? [holder === undefined ? "no holder" : "a holder of the sink"] : [requestsText(requests)],
        outcome: ["healthy again"],
      });
    },
  };
}

const requestsText = (requests: number): string => (requests > 0 ? "requests" : "no request");

function writerFault({ writers, random, injections, repair }: SinkDeployment): Fault {
  return {
    kind: killWriterKind,
    effectiveWhen: "always",
    weight: 1,
    async inject() {
      const writer = anyOf(
        writers.filter(({ up }) => up),
        random,
      );
      if (writer === undefined) return;
      writer.kill();
      const tail = async (): Promise<void> => {
        await systemClock.sleep(50 + random.int(300));
        await writer.start();
        const hit = ["a worker with runs"];
        injections.push({ kind: killWriterKind, effective: true, hit, outcome: ["started again"] });
      };
      repair(tail());
    },
  };
}
