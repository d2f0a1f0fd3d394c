export type Theme = "system" | "light" | "dark";
const key = "tape.theme";

export function storedTheme(): Theme {
  const theme = localStorage.getItem(key);
  return theme === "light" || theme === "dark" ? theme : "system";
}

export function applyTheme(theme: Theme = storedTheme()): void {
  localStorage.setItem(key, theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
