// Files and folders for a connection, dropped or chosen: each is sent alone, with its progress, and then a sync is started.

const IN_FLIGHT = 3;
const form = document.querySelector("[data-upload]");
const input = form.querySelector("input[type=file]");
const list = form.querySelector("[data-upload-list]");
const rows = form.querySelector("[data-upload-rows]");
const more = form.querySelector("[data-upload-continue]");
const sum = form.querySelector("[data-upload-sum]");

const folderInput = document.createElement("input");
folderInput.type = "file";
folderInput.webkitdirectory = true;

const folderOf = (path) => path.split("/").slice(0, -1).join("/");

const chosen = (files) => [...files].map((file) => ({ file, folder: folderOf(file.webkitRelativePath) }));

const readAll = async (reader) => {
  const entries = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) {
      return entries;
    }
    entries.push(...some);
  }
};

const filesIn = async (entry) => {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return [{ file, folder: folderOf(entry.fullPath.slice(1)) }];
  }
  const inside = await Promise.all((await readAll(entry.createReader())).map(filesIn));
  return inside.flat();
};

// Entries have to be taken from the event before it is over.
const dropped = async (transfer) => {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) {
    return chosen(transfer.files);
  }
  return (await Promise.all(entries.map(filesIn))).flat();
};

const megabytes = (bytes) => `${Math.round(bytes / 2 ** 20)} MB`;

const problemOf = ({ file }) => {
  const limit = Number(form.dataset.maxBytes);
  if (file.size === 0) {
    return "Empty file";
  }
  return file.size > limit ? `Larger than ${megabytes(limit)}` : "";
};

const rowOf = ({ file, folder }) => {
  const row = document.createElement("li");
  const name = document.createElement("span");
  const bar = document.createElement("progress");
  const state = document.createElement("span");
  row.className = "upload-row";
  name.className = "upload-name mono";
  name.textContent = folder ? `${folder}/${file.name}` : file.name;
  bar.max = 1;
  bar.value = 0;
  bar.setAttribute("aria-label", name.textContent);
  state.className = "upload-state";
  state.textContent = "waiting";
  row.append(name, bar, state);
  rows.append(row);
  return { row, bar, state };
};

const finish = ({ row, bar, state }, problem) => {
  bar.value = problem ? 0 : 1;
  row.classList.toggle("is-bad", problem !== "");
  state.textContent = problem || "uploaded";
};

const send = (upload, shown) =>
  new Promise((resolve) => {
    const data = new FormData();
    data.append("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
    data.append("alone", "yes");
    data.append("folder", upload.folder);
    data.append("uploads", upload.file);
    const request = new XMLHttpRequest();
    request.upload.addEventListener("progress", (event) => {
      shown.bar.value = event.lengthComputable ? event.loaded / event.total : 0;
      shown.state.textContent = `${Math.round(shown.bar.value * 100)} %`;
    });
    request.addEventListener("load", () => {
      const isPlain = request.getResponseHeader("Content-Type")?.startsWith("text/plain");
      const problem = isPlain ? request.responseText : `Error ${request.status}`;
      resolve(request.status === 204 ? "" : problem);
    });
    request.addEventListener("error", () => resolve("The connection was lost"));
    request.open("POST", form.action);
    request.send(data);
  });

const startSync = async () => {
  const data = new FormData();
  data.append("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
  await fetch(form.dataset.sync, { method: "POST", body: data, redirect: "manual" });
};

const uploadAll = async (uploads) => {
  // Files that a system hides, such as .DS_Store, are no documents.
  const queue = uploads.filter((it) => !`${it.folder}/${it.file.name}`.split("/").some((part) => part.startsWith(".")));
  if (!queue.length) {
    return;
  }
  rows.replaceChildren();
  more.hidden = true;
  list.hidden = false;
  form.setAttribute("aria-busy", "true");
  const pairs = queue.map((upload) => [upload, rowOf(upload)]);
  let done = 0;
  let failed = 0;
  const tell = () => {
    sum.textContent = `${done + failed} of ${pairs.length} files${failed ? `, ${failed} failed` : ""}`;
  };
  tell();
  const waiting = [...pairs];
  const work = async () => {
    for (let pair = waiting.shift(); pair; pair = waiting.shift()) {
      const [upload, shown] = pair;
      const problem = problemOf(upload) || (await send(upload, shown));
      finish(shown, problem);
      done += problem ? 0 : 1;
      failed += problem ? 1 : 0;
      tell();
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, work));
  form.removeAttribute("aria-busy");
  if (done) {
    await startSync();
  }
  if (done && !failed) {
    window.location.reload();
  } else if (done) {
    sum.textContent += ". The others are being imported.";
    more.hidden = false;
  }
};

form.querySelector("[data-upload-hint]").hidden = false;
form.querySelector("[data-upload-folder]").hidden = false;
form.querySelector("[data-upload-send]").hidden = true;
form.querySelector("[data-upload-folder]").addEventListener("click", () => folderInput.click());
more.addEventListener("click", () => window.location.reload());
folderInput.addEventListener("change", () => uploadAll(chosen(folderInput.files)));
input.addEventListener("change", () => uploadAll(chosen(input.files)));

for (const type of ["dragenter", "dragover"]) {
  form.addEventListener(type, (event) => {
    event.preventDefault();
    form.classList.add("is-over");
  });
}
form.addEventListener("dragleave", (event) => {
  if (!form.contains(event.relatedTarget)) {
    form.classList.remove("is-over");
  }
});
form.addEventListener("drop", async (event) => {
  event.preventDefault();
  form.classList.remove("is-over");
  await uploadAll(await dropped(event.dataTransfer));
});
