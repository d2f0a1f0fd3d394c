import { useState } from "react";
import { call, type Sink } from "../api.ts";
import { plural } from "../format.ts";
import { ConfirmAction } from "../ui/confirm-action.tsx";
import { ReasonDialog } from "../ui/reason-dialog.tsx";

type Given = { readonly reason: string; readonly key: string };

/** What an operator may do with a sink. */
export function SinkActions({ sink: { sink, state, lease } }: { readonly sink: Sink }) {
  const send = (name: "sinks.pause" | "sinks.resume" | "sinks.forget") => (input: Given) =>
    call(name, { params: { name: sink }, body: { reason: input.reason }, key: input.key });
  return (
    <>
      {state === "paused" ? (
        <ConfirmAction label="Resume" title={`Resume ${sink}`} primary run={send("sinks.resume")}>
          <p>Its fan-out continues from the checkpoint: nothing is skipped.</p>
        </ConfirmAction>
      ) : (
        <ConfirmAction label="Pause" title={`Pause ${sink}`} run={send("sinks.pause")}>
          <p>Nothing is sent until it is resumed. Pruning keeps the runs that it has not passed.</p>
        </ConfirmAction>
      )}
      <Rewind sink={sink} />
      {lease.checkpoint !== undefined && (
        <ConfirmAction label="Forget" title={`Forget ${sink}`} danger run={send("sinks.forget")}>
          <p>
            Removes its checkpoint, so that it keeps no run from pruning. Remove it from the configuration first: a
            fan-out that starts again begins as a new one.
          </p>
        </ConfirmAction>
      )}
    </>
  );
}

const places = { now: "now", start: "the start of the feed", event: "before an event" } as const;
type PlaceName = keyof typeof places;

function Rewind({ sink }: { readonly sink: string }) {
  const [open, setOpen] = useState(false);
  const [place, setPlace] = useState<PlaceName>("event");
  const [event, setEvent] = useState("");
  const to = place === "event" ? event.trim() : place;
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Rewind
      </button>
      {open && (
        <ReasonDialog
          title={`Rewind ${sink}`}
          label="Rewind"
          danger
          ready={to !== ""}
          run={(reason, key) => call("sinks.rewind", { params: { name: sink }, body: { reason, event: to }, key })}
          onClose={() => setOpen(false)}
        >
          <p>What comes after this place is sent again, with the same ids. What is skipped is not sent.</p>
          <label>
            Continue from
            <select value={place} onChange={({ target }) => setPlace(target.value as PlaceName)}>
              {Object.entries(places).map(([name, title]) => (
                <option key={name} value={name}>
                  {title}
                </option>
              ))}
            </select>
          </label>
          {place === "event" && (
            <label>
              Event
              <input
                className="mono"
                placeholder="17:5:1794848992501"
                value={event}
                onChange={({ target }) => setEvent(target.value)}
              />
            </label>
          )}
        </ReasonDialog>
      )}
    </>
  );
}

/** Replay and discard, of one dead letter or of all open ones. */
export function LetterActions({
  sink,
  event,
  count,
}: {
  readonly sink: string;
  /** Absent: all open ones. */
  readonly event?: string;
  readonly count: number;
}) {
  const subject = event === undefined ? `${plural(count, "dead letter")} of ${sink}` : `event ${event}`;
  const all = event === undefined ? " all" : "";
  const send = (name: "sinks.replay" | "sinks.discard") => (input: Given) =>
    call(name, {
      params: { name: sink },
      body: { reason: input.reason, ...(event !== undefined && { events: [event] }) },
      key: input.key,
    });
  return (
    <div className="actions">
      <ConfirmAction
        label={`Replay${all}`}
        title={`Replay ${subject}`}
        primary={event === undefined}
        run={send("sinks.replay")}
      >
        <p>Sent again with the same id. If the sink refuses it again, it is open again.</p>
      </ConfirmAction>
      <ConfirmAction
        label={`Discard${all}`}
        title={`Discard ${subject}`}
        danger={event === undefined}
        run={send("sinks.discard")}
      >
        <p>The sink never gets it. The record stays in the journal.</p>
      </ConfirmAction>
    </div>
  );
}
