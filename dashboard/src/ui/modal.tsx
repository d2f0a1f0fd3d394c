import { type ReactNode, useEffect, useRef } from "react";

/** A native dialog: the browser keeps the focus inside, and Escape closes it. */
export function Modal({
  title,
  side = false,
  onClose,
  children,
}: {
  readonly title: ReactNode;
  readonly side?: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={ref} className={side ? "drawer" : "modal"} onClose={onClose} aria-labelledby="dialog-title">
      <header className="dialog-head">
        <h2 id="dialog-title">{title}</h2>
        <button type="button" className="quiet" onClick={onClose} aria-label="Close">
          ✕
        </button>
      </header>
      <div className="dialog-body">{children}</div>
    </dialog>
  );
}
