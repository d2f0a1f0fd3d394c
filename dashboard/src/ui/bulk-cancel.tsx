import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../api.ts";
import type { RunSearch } from "../router.tsx";
import { runQuery } from "../run-search.ts";
import { ErrorMessage } from "./error-message.tsx";
import { ReasonDialog } from "./reason-dialog.tsx";

const live = ["RUNNABLE", "RUNNING", "WAITING", "STUCK"];
/** Whoever means more than this has a program for it. */
const most = 500;

/** Cancels what the filter shows and has not ended: first how many that are, then the deed, one call for each. */
export function BulkCancel({ search }: { readonly search: RunSearch }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Cancel these…
      </button>
      {open && <BulkForm search={search} onClose={() => setOpen(false)} />}
    </>
  );
}

function BulkForm({ search, onClose }: { readonly search: RunSearch; readonly onClose: () => void }) {
  const [done, setDone] = useState<number>();
  const wanted = (search.status?.split(",") ?? live).filter((one) => live.includes(one));
  const matching = useQuery({
    queryKey: ["bulk", search],
    queryFn: async () => {
      if (wanted.length === 0) return [];
      const { runs } = await call("runs.list", {
        query: { ...runQuery(search), status: wanted.join(","), limit: most },
      });
      return runs.map(({ id }) => id);
    },
    meta: { settled: true },
    staleTime: 0,
  });
  const ids = matching.data ?? [];
  const cancel = async (reason: string): Promise<void> => {
    setDone(0);
    for (const [k, id] of ids.entries()) {
      // Under the run's id: a second try finds what the first one did.
      await call("runs.cancel", { params: { id }, body: { reason, key: "page-bulk" } });
      setDone(k + 1);
    }
  };
  return (
    <ReasonDialog
      title="Cancel these runs"
      label={`Cancel ${ids.length} ${ids.length === 1 ? "run" : "runs"}`}
      danger
      ready={ids.length > 0}
      give={cancel}
      onClose={onClose}
    >
      <p role="status">
        {matching.data === undefined
          ? "counting…"
          : `${ids.length}${ids.length === most ? ", the newest of more," : ""} would be asked to stop, and undo what they owe.`}
        {done !== undefined && ` ${done} are.`}
      </p>
      {matching.error !== null && <ErrorMessage error={matching.error} />}
    </ReasonDialog>
  );
}
