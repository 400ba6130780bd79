// Shows the API's documentation in the theme of the console: Swagger UI has a class for the dark one.
(() => {
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;

  const apply = () => {
    root.classList.toggle("dark-mode", root.dataset.theme ? root.dataset.theme === "dark" : isDark.matches);
  };

  isDark.addEventListener("change", apply);
  apply();
})();
