import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { ErrorMessage } from "./error-message.tsx";
import { Modal } from "./modal.tsx";

export interface ReasonDialogProps<T> {
  readonly title: string;
  /** Label of the submit button. */
  readonly label: string;
  /** Label of the other button: "Cancel" would be ambiguous where the action cancels a run. */
  readonly dismissLabel?: string;
  readonly children?: ReactNode;
  readonly danger?: boolean;
  /** False while another required input is missing. */
  readonly ready?: boolean;
  /** The key makes a second click, or a retry after a lost response, the same action. */
  readonly run: (reason: string, key: string) => Promise<T>;
  readonly onDone?: ((result: T) => void) | undefined;
  readonly onClose: () => void;
}

/** The dialog of every operator action: it requires a reason for the audit log, and shows the error if one occurs. */
export function ReasonDialog<T>(props: ReasonDialogProps<T>) {
  const { title, label, dismissLabel = "Cancel", children, danger = false, ready = true, run, onDone, onClose } = props;
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const [key] = useState(() => crypto.randomUUID());
  const action = useMutation({
    mutationFn: () => run(reason.trim(), key),
    onSuccess: async (result) => {
      await client.invalidateQueries();
      onClose();
      onDone?.(result);
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    action.mutate();
  };
  return (
    <Modal title={title} onClose={onClose}>
      <form onSubmit={submit} className="reason-form">
        {children}
        <label>
          Reason
          <input
            required
            name="reason"
            maxLength={400}
            placeholder="recorded in the audit log"
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
        </label>
        {action.error !== null && <ErrorMessage error={action.error} />}
        <footer>
          <button type="button" onClick={onClose}>
            {dismissLabel}
          </button>
          <button type="submit" className={danger ? "danger" : "primary"} disabled={!ready || action.isPending}>
            {label}
          </button>
        </footer>
      </form>
    </Modal>
  );
}
