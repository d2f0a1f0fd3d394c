import { type ReactNode, useState } from "react";
import { ApiError } from "../api.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

export interface ConfirmActionProps {
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

/** A button, and behind it the question why. */
export function ConfirmAction(props: ConfirmActionProps) {
  const { label, title, children, value, danger = false, primary = false, run, onDone } = props;
  const [open, setOpen] = useState(false);
  const [text, setText] = useState(value?.initial ?? "");
  return (
    <>
      <button type="button" className={danger ? "danger" : primary ? "primary" : ""} onClick={() => setOpen(true)}>
        {label}
      </button>
      {open && (
        <ReasonDialog
          {...{ label, title, danger, onDone }}
          onClose={() => setOpen(false)}
          give={async (reason, key) => run({ reason, value: parsed(text), key })}
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

function parsed(text: string): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new ApiError({ status: 0, code: "This is not valid JSON", detail, next: 'Text wants quotes: "like this".' });
  }
}
