export type Tone = "ok" | "run" | "wait" | "unknown" | "bad" | "idle";
type Shape = "play" | "ring" | "check" | "cross" | "question" | "stop" | "dot" | "back" | "dash";

const styles: Readonly<Record<string, readonly [Tone, Shape]>> = {
  QUEUED: ["wait", "dot"],
  RUNNABLE: ["idle", "dot"],
  RUNNING: ["run", "play"],
  WAITING: ["wait", "ring"],
  ENDING: ["run", "play"],
  COMPENSATING: ["unknown", "back"],
  STUCK: ["bad", "stop"],
  COMPLETED: ["ok", "check"],
  FAILED: ["bad", "cross"],
  CANCELLED: ["idle", "dash"],
  COMPENSATED: ["idle", "back"],
  PENDING: ["wait", "ring"],
  DISPATCHED: ["run", "play"],
  CONFIRMED: ["ok", "check"],
  UNKNOWN: ["unknown", "question"],
  WITHDRAWN: ["idle", "dash"],
  ARMED: ["idle", "ring"],
  COMMITTED: ["run", "play"],
  DISCHARGED: ["idle", "dash"],
  OPEN: ["wait", "ring"],
  RECEIVED: ["ok", "check"],
  TIMED_OUT: ["bad", "cross"],
  SET: ["wait", "ring"],
  FIRED: ["ok", "check"],
  HELD: ["run", "play"],
  FREE: ["idle", "dot"],
  EXPIRED: ["bad", "cross"],
  DOOMED: ["bad", "stop"],
  PAUSED: ["idle", "dash"],
  STALLED: ["bad", "stop"],
  RETRYING: ["unknown", "back"],
  UNREACHABLE: ["unknown", "back"],
  OFF: ["idle", "dot"],
  CURRENT: ["ok", "check"],
  DRAINING: ["run", "play"],
  DRAINED: ["idle", "dash"],
  UNSERVED: ["bad", "stop"],
};

const paths: Readonly<Record<Shape, string>> = {
  play: "M3 1.5v9l8-4.5z",
  ring: "M6 1.2a4.8 4.8 0 1 0 .01 0zM6 3.2a2.8 2.8 0 1 1-.01 0z",
  check: "M6 .6a5.4 5.4 0 1 0 .01 0zM5.2 8.7 2.7 6.2l1-1 1.5 1.4 3-3.2 1.1.9z",
  cross: "M2.6 1 6 4.4 9.4 1 11 2.6 7.6 6 11 9.4 9.4 11 6 7.6 2.6 11 1 9.4 4.4 6 1 2.6z",
  question:
    "M6 .2 11.8 6 6 11.8.2 6zM5.3 8.2h1.5v1.4H5.3zM4 4.7C4 3.4 4.9 2.7 6.1 2.7s2 .7 2 1.7c0 1.5-1.4 1.6-1.4 2.9H5.4c0-1.8 1.3-1.9 1.3-2.8 0-.4-.2-.6-.6-.6-.5 0-.7.3-.7.8z",
  stop: "M3.6.6h4.8l3 3v4.8l-3 3H3.6l-3-3V3.6zM5.2 2.8v4h1.6v-4zm0 5v1.5h1.6V7.8z",
  dot: "M6 3.2a2.8 2.8 0 1 0 .01 0z",
  back: "M5.5 1.5v2.3H7a3.4 3.4 0 0 1 0 6.8H3V9h4a1.8 1.8 0 0 0 0-3.6H5.5v2.3L1.6 4.6z",
  dash: "M1.5 5h9v2h-9z",
};

export const toneOf = (status: string): Tone => styles[status]?.[0] ?? "idle";

/** A status, by shape, colour and word: no reader depends on colour alone. */
export function Badge({ status, label }: { readonly status: string; readonly label?: string }) {
  const [tone, shape] = styles[status] ?? (["idle", "dot"] as const);
  return (
    <span className={`badge ${tone}`}>
      <svg viewBox="0 0 12 12" width="11" height="11" aria-hidden="true">
        <path d={paths[shape]} fill="currentColor" fillRule="evenodd" />
      </svg>
      {label ?? status.toLowerCase().replaceAll("_", " ")}
    </span>
  );
}
