import { call } from "../api.ts";
import { ConfirmAction } from "../ui/confirm-action.tsx";

/** Fences whoever drives the run and sets it free; a recovery reactor has it next. */
export function RunTakeover({ id, owner }: { readonly id: string; readonly owner: string | null }) {
  return (
    <ConfirmAction
      label="Take over"
      title={`Take ${id} from its owner`}
      danger
      run={({ reason }) => call("runs.takeover", { params: { id }, body: { reason } })}
    >
      <p>
        {owner ?? "Its owner"} is fenced at once: nothing it still writes is accepted. The run is free, and another
        worker drives it on from its journal. An act that was under way is then in doubt until somebody has looked.
      </p>
    </ConfirmAction>
  );
}
