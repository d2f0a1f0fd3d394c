import { machine } from "./machine.ts";

/**
 * The phase of a run as its row stores it. RUNNABLE, RUNNING and WAITING are one stored phase, LIVE. The lease row
 * distinguishes the three, so that parking, claiming and stepping never write the run's row.
 */
export const runMachine = machine({
  name: "run",
  states: ["LIVE", "ENDING", "COMPENSATING", "STUCK", "COMPLETED", "FAILED", "CANCELLED", "COMPENSATED"],
  initial: ["LIVE"],
  final: ["COMPLETED", "FAILED", "CANCELLED", "COMPENSATED"],
  events: {
    decide: { from: ["LIVE"], to: "ENDING" },
    // Directly from LIVE if nothing is open: one record decides and ends the run.
    complete: { from: ["LIVE", "ENDING"], to: "COMPLETED" },
    fail: { from: ["LIVE", "ENDING"], to: "FAILED" },
    cancel: { from: ["LIVE", "ENDING"], to: "CANCELLED" },
    compensate: { from: ["ENDING"], to: "COMPENSATING" },
    compensated: { from: ["COMPENSATING"], to: "COMPENSATED" },
    stick: { from: ["LIVE", "ENDING", "COMPENSATING"], to: "STUCK" },
    unstickLive: { from: ["STUCK"], to: "LIVE" },
    unstickEnding: { from: ["STUCK"], to: "ENDING" },
    unstickCompensating: { from: ["STUCK"], to: "COMPENSATING" },
  },
});
export type RunPhase = (typeof runMachine.states)[number];
/** The status that operators see: lease and slot split LIVE into four. QUEUED: the run waits for a slot of its queue. */
export type RunStatus = Exclude<RunPhase, "LIVE"> | "QUEUED" | "RUNNABLE" | "RUNNING" | "WAITING";
export const runStatuses: readonly RunStatus[] = [
  "QUEUED",
  "RUNNABLE",
  "RUNNING",
  "WAITING",
  ...runMachine.states.filter((state) => state !== "LIVE"),
];

export const effectMachine = machine({
  name: "effect",
  states: ["PENDING", "DISPATCHED", "CONFIRMED", "FAILED", "UNKNOWN", "STUCK", "WITHDRAWN"],
  initial: ["PENDING"],
  final: ["CONFIRMED", "FAILED", "WITHDRAWN"],
  events: {
    dispatch: { from: ["PENDING"], to: "DISPATCHED" },
    confirm: { from: ["DISPATCHED", "UNKNOWN", "STUCK"], to: "CONFIRMED" },
    fail: { from: ["DISPATCHED", "UNKNOWN", "STUCK"], to: "FAILED" },
    // From PENDING if an earlier attempt may have happened and the run is ending.
    becomeUnknown: { from: ["DISPATCHED", "PENDING"], to: "UNKNOWN" },
    retry: { from: ["DISPATCHED", "UNKNOWN", "STUCK"], to: "PENDING" },
    stick: { from: ["UNKNOWN", "PENDING"], to: "STUCK" },
    withdraw: { from: ["PENDING"], to: "WITHDRAWN" },
  },
});
export type EffectStatus = (typeof effectMachine.states)[number];

/** An obligation is an effect with the role `compensation`; these are its statuses, also in the store. */
export const obligationMachine = machine({
  name: "obligation",
  states: ["ARMED", "PENDING", "COMMITTED", "UNKNOWN", "COMPENSATED", "STUCK", "DISCHARGED"],
  initial: ["ARMED", "PENDING", "STUCK"],
  final: ["COMPENSATED", "DISCHARGED"],
  events: {
    fallDue: { from: ["ARMED"], to: "PENDING" },
    commit: { from: ["PENDING"], to: "COMMITTED" },
    compensate: { from: ["COMMITTED", "UNKNOWN", "STUCK"], to: "COMPENSATED" },
    becomeUnknown: { from: ["COMMITTED"], to: "UNKNOWN" },
    retry: { from: ["COMMITTED", "UNKNOWN", "STUCK"], to: "PENDING" },
    stick: { from: ["PENDING", "COMMITTED", "UNKNOWN"], to: "STUCK" },
    discharge: { from: ["ARMED"], to: "DISCHARGED" },
  },
});
export type ObligationStatus = (typeof obligationMachine.states)[number];

export const gateMachine = machine({
  name: "gate",
  states: ["OPEN", "RECEIVED", "TIMED_OUT", "WITHDRAWN"],
  initial: ["OPEN"],
  final: ["RECEIVED", "TIMED_OUT", "WITHDRAWN"],
  events: {
    receive: { from: ["OPEN"], to: "RECEIVED" },
    timeOut: { from: ["OPEN"], to: "TIMED_OUT" },
    withdraw: { from: ["OPEN"], to: "WITHDRAWN" },
  },
});
export type GateStatus = (typeof gateMachine.states)[number];

export const timerMachine = machine({
  name: "timer",
  states: ["SET", "FIRED", "CANCELLED"],
  initial: ["SET"],
  final: ["FIRED", "CANCELLED"],
  events: {
    fire: { from: ["SET"], to: "FIRED" },
    cancel: { from: ["SET"], to: "CANCELLED" },
  },
});
export type TimerStatus = (typeof timerMachine.states)[number];

/**
 * A lease, as the store sees it. EXPIRED is HELD after its TTL: expiry writes nothing, and the holder may still renew
 * until a takeover. DOOMED: a takeover is announced, and the holder's writes and renewals are refused from now on.
 */
export const leaseMachine = machine({
  name: "lease",
  states: ["FREE", "HELD", "EXPIRED", "DOOMED"],
  initial: ["FREE", "HELD"],
  final: [],
  events: {
    acquire: { from: ["FREE"], to: "HELD" },
    renew: { from: ["HELD", "EXPIRED"], to: "HELD" },
    expire: { from: ["HELD"], to: "EXPIRED" },
    steal: { from: ["EXPIRED"], to: "HELD" },
    doom: { from: ["HELD", "EXPIRED"], to: "DOOMED" },
    takeOver: { from: ["DOOMED", "HELD"], to: "HELD" },
    release: { from: ["HELD", "EXPIRED", "DOOMED"], to: "FREE" },
  },
});
export type LeaseState = (typeof leaseMachine.states)[number];
