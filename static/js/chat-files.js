// Files for the conversation: chosen, dropped on the question, or pasted into it.

const form = document.querySelector("[data-attach]");
const input = document.querySelector("[data-attach-input]");
const composer = document.querySelector("[data-composer]");
const problem = document.querySelector("[data-problem]");
const announcement = document.querySelector("[data-announcement]");

const say = (text, isBad) => {
  const remark = document.createElement("p");
  remark.className = isBad ? "remark is-bad" : "remark";
  remark.setAttribute("role", isBad ? "alert" : "status");
  remark.textContent = text;
  problem.replaceChildren(...(text ? [remark] : []));
};

// The first file starts a conversation, whose address the page takes.
const move = (address) => {
  if (address && address !== window.location.pathname) {
    window.history.pushState(null, "", address);
    composer.action = address;
  }
};

const attach = async (files) => {
  if (!files.length) {
    return;
  }
  const data = new FormData();
  data.append("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
  data.append("preset", composer.elements.preset.value);
  for (const file of files) {
    data.append("files", file);
  }
  say(files.length === 1 ? `Attaching ${files[0].name} …` : `Attaching ${files.length} files …`, false);
  try {
    // The question form knows the conversation, also one that a question began.
    const response = await fetch(`${composer.action}files/`, { method: "POST", body: data, headers: { "HX-Request": "true" } });
    const text = await response.text();
    if (!response.ok) {
      const isPlain = response.headers.get("Content-Type")?.startsWith("text/plain");
      say(isPlain ? text : "The files were not attached.", true);
      return;
    }
    move(response.headers.get("HX-Push-Url"));
    const fresh = document.adoptNode(new DOMParser().parseFromString(text, "text/html").body.firstElementChild);
    document.querySelector("#chat-files").replaceWith(fresh);
    window.htmx?.process(fresh);
    say("", false);
    announcement.textContent = "Attached.";
  } catch {
    say("The server is unreachable. The files were not attached.", true);
  }
  input.value = "";
};

input.addEventListener("change", () => attach([...input.files]));

const hasFiles = (transfer) => [...(transfer?.types ?? [])].includes("Files");

for (const type of ["dragenter", "dragover"]) {
  composer.addEventListener(type, (event) => {
    if (hasFiles(event.dataTransfer)) {
      event.preventDefault();
      composer.classList.add("is-over");
    }
  });
}
composer.addEventListener("dragleave", (event) => {
  if (!composer.contains(event.relatedTarget)) {
    composer.classList.remove("is-over");
  }
});
composer.addEventListener("drop", (event) => {
  if (hasFiles(event.dataTransfer)) {
    event.preventDefault();
    composer.classList.remove("is-over");
    attach([...event.dataTransfer.files]);
  }
});
composer.addEventListener("paste", (event) => {
  if (event.clipboardData?.files.length) {
    event.preventDefault();
    attach([...event.clipboardData.files]);
  }
});
