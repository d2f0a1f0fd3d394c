import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { Failure, Modal } from "./parts.tsx";

export interface DeedProps {
  /** On the button that opens it and the one that does it. */
  readonly label: string;
  readonly title: string;
  readonly children?: ReactNode;
  /** A value that goes along, as JSON. */
  readonly value?: { readonly label: string; readonly initial: string };
  readonly danger?: boolean;
  readonly primary?: boolean;
  readonly run: (deed: { readonly reason: string; readonly value: unknown; readonly key: string }) => Promise<unknown>;
  readonly onDone?: () => void;
}

/** Something a person does: it asks why, since the audit keeps it, does it once, and shows what the server said. */
export function Deed(props: DeedProps) {
  const [open, setOpen] = useState(false);
  const look = props.danger === true ? "danger" : props.primary === true ? "primary" : "";
  return (
    <>
      <button type="button" className={look} onClick={() => setOpen(true)}>
        {props.label}
      </button>
      {open && <DeedForm {...props} close={() => setOpen(false)} />}
    </>
  );
}

function DeedForm({ label, title, children, value, danger, run, onDone, close }: DeedProps & { close: () => void }) {
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const [text, setText] = useState(value?.initial ?? "");
  const [key] = useState(() => crypto.randomUUID());
  const [wrong, setWrong] = useState<string>();
  const deed = useMutation({
    mutationFn: (parsed: unknown) => run({ reason: reason.trim(), value: parsed, key }),
    onSuccess: async () => {
      await client.invalidateQueries();
      close();
      onDone?.();
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    try {
      const parsed: unknown = value === undefined || text.trim() === "" ? undefined : JSON.parse(text);
      setWrong(undefined);
      deed.mutate(parsed);
    } catch {
      setWrong("This is not valid JSON.");
    }
  };
  return (
    <Modal title={title} onClose={close}>
      <form onSubmit={submit} className="deed">
        {children}
        {value !== undefined && (
          <label>
            {value.label}
            <textarea rows={3} className="mono" value={text} onChange={(event) => setText(event.target.value)} />
          </label>
        )}
        {wrong !== undefined && (
          <p role="alert" className="bad-text">
            {wrong}
          </p>
        )}
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
        {deed.error !== null && <Failure error={deed.error} />}
        <footer>
          <button type="button" onClick={close}>
            Leave it
          </button>
          <button type="submit" className={danger === true ? "danger" : "primary"} disabled={deed.isPending}>
            {label}
          </button>
        </footer>
      </form>
    </Modal>
  );
}
