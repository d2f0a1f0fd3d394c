import { call } from "../api.ts";
import { ConfirmAction } from "../ui/confirm-action.tsx";

/** Fences the current owner of the run and releases the run to the recovery reactor. */
export function RunTakeover({ id, owner }: { readonly id: string; readonly owner: string | null }) {
  return (
    <ConfirmAction
      label="Take over"
      title={`Take over ${id}`}
      danger
      run={({ reason }) => call("runs.takeover", { params: { id }, body: { reason } })}
    >
      <p>
        {owner ?? "The current owner"} is fenced immediately; its writes will be rejected. Another worker resumes the
        run from its journal. An effect in flight is in doubt until it is observed.
      </p>
    </ConfirmAction>
  );
}
