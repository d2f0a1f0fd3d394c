import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { ErrorMessage } from "./error-message.tsx";
import { Modal } from "./modal.tsx";

export interface ReasonDialogProps<T> {
  readonly title: string;
  /** On the button that does it. */
  readonly label: string;
  readonly children?: ReactNode;
  readonly danger?: boolean;
  /** Whether what else it needs has been given. */
  readonly ready?: boolean;
  /** The key makes a repeated click, or a second try after a lost answer, the same deed. */
  readonly give: (reason: string, key: string) => Promise<T>;
  readonly onDone?: ((made: T) => void) | undefined;
  readonly onClose: () => void;
}

/** The dialog of everything that a person does: it asks why, since the audit keeps it, and shows what was refused. */
export function ReasonDialog<T>(props: ReasonDialogProps<T>) {
  const { title, label, children, danger = false, ready = true, give, onDone, onClose } = props;
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const [key] = useState(() => crypto.randomUUID());
  const deed = useMutation({
    mutationFn: () => give(reason.trim(), key),
    onSuccess: async (made) => {
      await client.invalidateQueries();
      onClose();
      onDone?.(made);
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    deed.mutate();
  };
  return (
    <Modal title={title} onClose={onClose}>
      <form onSubmit={submit} className="deed">
        {children}
        <label>
          Why
          <input
            required
            name="reason"
            maxLength={400}
            placeholder="kept in the audit"
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
        </label>
        {deed.error !== null && <ErrorMessage error={deed.error} />}
        <footer>
          <button type="button" onClick={onClose}>
            Leave it
          </button>
          <button type="submit" className={danger ? "danger" : "primary"} disabled={!ready || deed.isPending}>
            {label}
          </button>
        </footer>
      </form>
    </Modal>
  );
}
