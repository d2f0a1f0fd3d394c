import { type ReactNode, useState } from "react";
import { ApiError } from "../api.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

export interface ConfirmActionProps {
  /** Label of the button that opens the dialog, and of the submit button. */
  readonly label: string;
  /** Label of the submit button, where it differs. */
  readonly submitLabel?: string;
  readonly dismissLabel?: string;
  readonly title: string;
  readonly children?: ReactNode;
  /** A value to send, entered as JSON. */
  readonly value?: { readonly label: string; readonly initial: string };
  readonly danger?: boolean;
  readonly primary?: boolean;
  readonly run: (input: { readonly reason: string; readonly value: unknown; readonly key: string }) => Promise<unknown>;
}

/** A button that opens the dialog of an operator action. */
export function ConfirmAction(props: ConfirmActionProps) {
  const {
    label,
    submitLabel = label,
    dismissLabel,
    title,
    children,
    value,
    danger = false,
    primary = false,
    run,
  } = props;
  const [open, setOpen] = useState(false);
  const [text, setText] = useState(value?.initial ?? "");
  return (
    <>
      <button type="button" className={danger ? "danger" : primary ? "primary" : ""} onClick={() => setOpen(true)}>
        {label}
      </button>
      {open && (
        <ReasonDialog
          {...{ title, danger }}
          {...(dismissLabel === undefined ? {} : { dismissLabel })}
          label={submitLabel}
          onClose={() => setOpen(false)}
          run={async (reason, key) => run({ reason, value: jsonOf(text), key })}
        >
          {children}
          {value !== undefined && (
            <label>
              {value.label}
              <textarea rows={3} className="mono" value={text} onChange={(event) => setText(event.target.value)} />
            </label>
          )}
        </ReasonDialog>
      )}
    </>
  );
}

function jsonOf(text: string): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new ApiError({ status: 0, code: "Invalid JSON", detail, next: 'Put text in quotes: "like this".' });
  }
}
