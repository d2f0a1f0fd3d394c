import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { call } from "../api.ts";
import type { RunSearch } from "../router.tsx";
import { Failure, Modal } from "./parts.tsx";

const live = ["RUNNABLE", "RUNNING", "WAITING", "STUCK"];
/** Whoever means more than this has a program for it. */
const most = 500;

/** Cancels what the filter shows and has not ended: first how many that are, then the deed, one call for each. */
export function BulkCancel(search: RunSearch) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Cancel these…
      </button>
      {open && <BulkForm {...search} close={() => setOpen(false)} />}
    </>
  );
}

function BulkForm({ status, workflow, label, close }: RunSearch & { readonly close: () => void }) {
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const [done, setDone] = useState(0);
  const wanted = (status?.split(",") ?? live).filter((one) => live.includes(one));
  const matching = useQuery({
    queryKey: ["bulk", status, workflow, label],
    queryFn: async () => {
      if (wanted.length === 0) return [];
      const { runs } = await call("runs.list", { query: { status: wanted.join(","), workflow, label, limit: most } });
      return runs.map(({ id }) => id);
    },
    meta: { settled: true },
    staleTime: 0,
  });
  const cancel = useMutation({
    mutationFn: async (ids: readonly string[]) => {
      for (const id of ids) {
        // Under the run's id: a second try finds what the first one did.
        await call("runs.cancel", { params: { id }, body: { reason: reason.trim(), key: "page-bulk" } });
        setDone((before) => before + 1);
      }
    },
    onSuccess: async () => {
      await client.invalidateQueries();
      close();
    },
  });
  const ids = matching.data ?? [];
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setDone(0);
    cancel.mutate(ids);
  };
  return (
    <Modal title="Cancel these runs" onClose={close}>
      <form onSubmit={submit} className="deed">
        <p role="status">
          {matching.data === undefined
            ? "counting…"
            : `${ids.length}${ids.length === most ? ", the newest of more," : ""} would be asked to stop, and undo what they owe.`}
          {cancel.isPending && ` ${done} are.`}
        </p>
        <label>
          Why
          <input
            required
            name="reason"
            maxLength={400}
            placeholder="kept with each run"
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
        </label>
        {matching.error !== null && <Failure error={matching.error} />}
        {cancel.error !== null && <Failure error={cancel.error} />}
        <footer>
          <button type="button" onClick={close}>
            Leave them
          </button>
          <button type="submit" className="danger" disabled={ids.length === 0 || cancel.isPending}>
            Cancel {ids.length} {ids.length === 1 ? "run" : "runs"}
          </button>
        </footer>
      </form>
    </Modal>
  );
}
