export type Theme = "system" | "light" | "dark";
const name = "tape.theme";

export function storedTheme(): Theme {
  const kept = localStorage.getItem(name);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function applyTheme(theme: Theme = storedTheme()): void {
  localStorage.setItem(name, theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
