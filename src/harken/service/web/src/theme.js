// Light, dark, or as the system has it.
const KEY = "harken-theme";

/** Take what was chosen before. */
export function useStoredTheme() {
  let stored = null;
  try {
    stored = localStorage.getItem(KEY);
  } catch {
    // a file that is opened from disk may have no storage
  }
  if (stored === "light" || stored === "dark") document.documentElement.dataset.theme = stored;
}

export function nextTheme() {
  const now = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // then it lasts as long as the page
  }
}
