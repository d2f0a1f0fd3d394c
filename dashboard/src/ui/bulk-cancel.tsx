import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../api.ts";
import { plural } from "../format.ts";
import { matchingRunIds } from "../queries.ts";
import type { RunSearch } from "../run-search.ts";
import { ErrorMessage } from "./error-message.tsx";
import { ReasonDialog } from "./reason-dialog.tsx";

const cancellable = ["QUEUED", "RUNNABLE", "RUNNING", "WAITING", "STUCK"];
/** One request per run: for more than this a script is the better tool. */
const maxRuns = 500;

/** Cancels the open runs that match the filter. It shows their number first, then sends one request for each. */
export function BulkCancel({ search }: { readonly search: RunSearch }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Cancel matching runs…
      </button>
      {open && <BulkDialog search={search} onClose={() => setOpen(false)} />}
    </>
  );
}

function BulkDialog({ search, onClose }: { readonly search: RunSearch; readonly onClose: () => void }) {
  const [sent, setSent] = useState<number>();
  const statuses = (search.status?.split(",") ?? cancellable).filter((status) => cancellable.includes(status));
  const matching = useQuery(matchingRunIds(search, statuses, maxRuns));
  const ids = matching.data ?? [];
  const cancel = async (reason: string): Promise<void> => {
    setSent(0);
    for (const [k, id] of ids.entries()) {
      // The key is scoped to the run: a second try repeats the same request.
      await call("runs.cancel", { params: { id }, body: { reason, key: "page-bulk" } });
      setSent(k + 1);
    }
  };
  return (
    <ReasonDialog
      title="Cancel matching runs"
      label={`Cancel ${plural(ids.length, "run")}`}
      dismissLabel="Keep running"
      danger
      ready={ids.length > 0}
      run={cancel}
      onClose={onClose}
    >
      <p role="status">
        {matching.data === undefined
          ? "Counting…"
          : `Requests cancellation of ${plural(ids.length, "open run")}${
              ids.length === maxRuns ? " (the newest; more match)" : ""
            }. Compensations that are owed will run.`}
        {sent !== undefined && ` ${sent} of ${ids.length} requested.`}
      </p>
      {matching.error !== null && <ErrorMessage error={matching.error} />}
    </ReasonDialog>
  );
}
