import { useState } from "react";
import { call, type Queue } from "../api.ts";
import { ConfirmAction } from "../ui/confirm-action.tsx";
import { LimitsDialog } from "./limits-dialog.tsx";

/** Pause or resume, of the queue or of one key. */
export function PauseAction({
  queue,
  paused,
  partition,
}: {
  readonly queue: string;
  readonly paused: boolean;
  /** A key of the queue; absent: the whole queue. */
  readonly partition?: string;
}) {
  const subject = partition === undefined ? queue : `key ${partition || "(no key)"} of ${queue}`;
  const send = (name: "queues.pause" | "queues.resume") => (input: { readonly reason: string; readonly key: string }) =>
    call(name, {
      params: { name: queue },
      body: { reason: input.reason, ...(partition !== undefined && { key: partition }) },
      key: input.key,
    });
  return paused ? (
    <ConfirmAction label="Resume" title={`Resume ${subject}`} primary run={send("queues.resume")}>
      <p>Waiting runs start again, as far as the limits allow.</p>
    </ConfirmAction>
  ) : (
    <ConfirmAction label="Pause" title={`Pause ${subject}`} run={send("queues.pause")}>
      <p>Nothing starts until it is resumed. Runs that hold slots continue.</p>
    </ConfirmAction>
  );
}

/** What an operator may do with a queue. */
export function QueueActions({ queue }: { readonly queue: Queue }) {
  const { name, paused, override } = queue;
  const [isChanging, setChanging] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setChanging(true)}>
        Set limits
      </button>
      {override !== undefined && (
        <ConfirmAction
          label="Reset limits"
          title={`Reset the limits of ${name}`}
          run={({ reason, key }) => call("queues.reset", { params: { name }, query: { reason }, key })}
        >
          <p>The limits of its definition apply again.</p>
        </ConfirmAction>
      )}
      <PauseAction queue={name} paused={paused !== undefined} />
      {isChanging && <LimitsDialog queue={queue} onClose={() => setChanging(false)} />}
    </>
  );
}
