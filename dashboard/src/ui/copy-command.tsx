import { useRef, useState } from "react";

/** A command, with a button that copies it. Without access to the clipboard the button selects it. */
export function CopyCommand({ command }: { readonly command: string }) {
  const code = useRef<HTMLElement>(null);
  const [state, setState] = useState<"copied" | "selected">();
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(command);
      setState("copied");
    } catch {
      getSelection()?.selectAllChildren(code.current!);
      setState("selected");
    }
  };
  return (
    <div className="command">
      <code ref={code}>{command}</code>
      <button type="button" aria-label={`Copy: ${command}`} onClick={() => void copy()}>
        Copy
      </button>
      <span className="muted small" role="status">
        {state === "copied" ? "Copied" : state === "selected" ? "Selected: press Ctrl+C" : ""}
      </span>
    </div>
  );
}
