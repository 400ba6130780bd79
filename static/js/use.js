// Reports what was opened or copied, beside what the page does with it.

export const reportUse = (address, use) => {
  const csrfmiddlewaretoken = document.querySelector("[name=csrfmiddlewaretoken]").value;
  const body = new URLSearchParams({ ...use, csrfmiddlewaretoken });
  fetch(address, { method: "POST", body, keepalive: true }).catch(() => {});
};
