// The chosen theme, stored in this browser. Runs before the first paint; the buttons may load later.
(() => {
  const KEY = "corecube-theme";
  const CHOICES = ["auto", "light", "dark"];

  const stored = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // Storage may be blocked; the theme then lasts as long as the page.
    }
  };

  const store = (choice) => {
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // See above.
    }
  };

  const apply = (choice) => {
    if (choice === "auto") {
      delete document.documentElement.dataset.theme;
    } else {
      document.documentElement.dataset.theme = choice;
    }
    for (const button of document.querySelectorAll("[data-theme-choice]")) {
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === choice));
    }
  };

  const current = () => (CHOICES.includes(stored()) ? stored() : "auto");

  apply(current());
  document.addEventListener("DOMContentLoaded", () => apply(current()));
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-theme-choice]");
    if (button) {
      store(button.dataset.themeChoice);
      apply(button.dataset.themeChoice);
    }
  });
})();
