import { call } from "../api.ts";
import { ConfirmAction } from "../ui/confirm-action.tsx";

/** Erases the payloads of a run that has ended, and of its tree, part by part. */
export function RunErase({ id }: { readonly id: string }) {
  return (
    <ConfirmAction
      label="Erase"
      submitLabel="Erase for good"
      dismissLabel="Keep"
      title={`Erase the payloads of ${id}`}
      danger
      run={({ reason }) => eraseAll(id, reason)}
    >
      <p>
        Inputs, results, errors, signals, published values, streams and the values of labels are erased for good: of
        this run, and of all runs of its tree. The journal stays, with times, statuses, names and keys.
      </p>
      <p>The audit log, the archive, backups and what sinks have sent on are not erased.</p>
    </ConfirmAction>
  );
}

async function eraseAll(id: string, reason: string): Promise<void> {
  const erase = (after?: string) =>
    call("runs.erase", { params: { id }, body: { reason, tree: true, ...(after !== undefined && { after }) } });
  for (let { next } = await erase(); next !== undefined; ) ({ next } = await erase(next));
}
