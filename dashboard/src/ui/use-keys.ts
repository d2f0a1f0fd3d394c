import { useEffect } from "react";

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);

/** `/` focuses the search, j and k step through the rows. The browser itself handles enter and escape. */
export function useKeys(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === "Escape" && isTyping(event.target)) (event.target as HTMLElement).blur();
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]") !== null) return;
      if (event.key === "/") {
        event.preventDefault();
        document.querySelector<HTMLInputElement>("input[type=search]")?.focus();
      }
      if (event.key === "j" || event.key === "k") focusRow(event.key === "j" ? 1 : -1);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

function focusRow(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")];
  const focused = rows.indexOf(document.activeElement as HTMLElement);
  const next = focused < 0 ? rows[0] : rows[focused + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}
