// Keys and users. What is shown once has a button that copies it, and is selected whole on focus.

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

// A user who is ticked while the list loads would not be ticked in the new one, so the list is loaded again.
document.addEventListener("change", (event) => {
  const list = event.target.closest(".checks-list");
  const field = list && document.querySelector(`.htmx-request[hx-target="#${list.id}"]`);
  if (field) {
    window.htmx.trigger(field, "again");
  }
});
