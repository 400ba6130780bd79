// What is shown once: a button that copies it, and the whole of it chosen on focus.

for (const field of document.querySelectorAll("[data-secret]")) {
  field.addEventListener("focus", () => field.select());
}

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) {
    continue;
  }
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).value);
    button.parentElement.querySelector("[data-copied]").textContent = "Copied";
  });
}
