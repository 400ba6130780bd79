// A change of a clearance that gives or takes access is confirmed in a dialog, which comes with the response.

let field = "";

const refocus = () => {
  document.getElementById(field)?.focus();
  field = "";
};

const openDialog = () => {
  const dialog = document.querySelector("dialog[data-confirm]");
  if (dialog && !dialog.open) {
    field = dialog.dataset.confirm;
    dialog.showModal();
    dialog.addEventListener("close", () => {
      dialog.remove();
      refocus();
    });
  } else if (!dialog && field) {
    refocus();
  }
};

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-confirm-cancel]")) {
    event.target.closest("dialog").close();
  }
});

new MutationObserver(openDialog).observe(document.getElementById("main"), { childList: true, subtree: true });
