// The chat page: sends a question without reloading and shows the answer while it is written. Without this script the
// form reloads the page with the answer.

import { Draft } from "./chat-draft.js";
import { eventsOf } from "./chat-events.js";

const NEAR_THE_END = 120;
const MAX_ROWS = 8;
const FRAGMENT = { "HX-Request": "true" };
const BROKEN = "Connection lost.";
const PAUSE_MS = 1000;
const MAX_PAUSE_MS = 10_000;
const MAX_ATTEMPTS = 5;

const thread = document.querySelector("[data-thread]");
const composer = document.querySelector("[data-composer]");
const question = document.querySelector("[data-question]");
const send = document.querySelector("[data-send]");
const stop = document.querySelector("[data-stop]");
const problem = document.querySelector("[data-problem]");
const announcement = document.querySelector("[data-announcement]");

const motion = window.matchMedia("(prefers-reduced-motion: no-preference)");
const touch = window.matchMedia("(hover: none)");

// The exchange whose answer is being written, or the thread while a question is being sent.
let writing = null;

const announce = (text) => {
  announcement.textContent = "";
  requestAnimationFrame(() => {
    announcement.textContent = text;
  });
};

// HTML from the server as a node; scripts in it do not run.
const nodeOf = (html) => document.adoptNode(new DOMParser().parseFromString(html, "text/html").body.firstElementChild);

const settle = () => {
  send.disabled = writing !== null || question.value.trim() === "";
  send.hidden = writing !== null;
  stop.hidden = writing === null;
};

// For browsers whose style sheet cannot grow the field with its text.
const grow = () => {
  if (CSS.supports("field-sizing", "content")) {
    return;
  }
  question.rows = 1;
  while (question.scrollHeight > question.clientHeight && question.rows < MAX_ROWS) {
    question.rows += 1;
  }
};

const complain = (text) => {
  const remark = document.createElement("p");
  remark.className = "remark is-bad";
  remark.setAttribute("role", "alert");
  remark.textContent = text;
  problem.replaceChildren(...(text ? [remark] : []));
};

// Scrolls with the text only while the reader is at its end.
const isAtEnd = () => window.innerHeight + window.scrollY > document.documentElement.scrollHeight - NEAR_THE_END;

// To the end, but not beyond the start of the last answer, where reading begins.
const toEnd = (behavior = "instant") => {
  const last = thread.lastElementChild;
  const start = window.scrollY + last.getBoundingClientRect().top - parseFloat(getComputedStyle(last).scrollMarginBlockStart);
  const end = document.documentElement.scrollHeight - window.innerHeight;
  window.scrollTo({ top: Math.min(start, end), behavior });
};

const swap = (exchange, fresh) => {
  const follows = isAtEnd();
  const hasFocus = exchange.contains(document.activeElement);
  exchange.replaceWith(fresh);
  window.htmx?.process(fresh);
  document.dispatchEvent(new CustomEvent("chat:exchange", { detail: fresh }));
  if (hasFocus) {
    fresh.focus({ preventScroll: true });
  }
  if (follows) {
    toEnd();
  }
};

// A fragment from the server; a session that has ended leads to the sign-in.
const loaded = async (address, options = {}) => {
  const response = await fetch(address, { ...options, headers: FRAGMENT });
  const elsewhere = response.headers.get("HX-Redirect");
  if (elsewhere) {
    window.location.assign(elsewhere);
    await new Promise(() => {});
  }
  if (!response.ok) {
    const isPlain = response.headers.get("Content-Type")?.startsWith("text/plain");
    throw new Error(isPlain ? await response.text() : "This conversation no longer accepts questions.");
  }
  return response;
};

// Shows the stored answer, however it ended; the state of an unfinished one is returned instead.
const finish = async (exchange) => {
  const fresh = nodeOf(await (await loaded(exchange.dataset.address)).text());
  if (fresh.dataset.events) {
    return fresh.dataset.state;
  }
  swap(exchange, fresh);
  announce(fresh.dataset.spoken);
  return "";
};

// The server is unreachable: the partial answer stays, and the question can be asked again.
const breakOff = (exchange) => {
  const place = exchange.querySelector("[data-text]");
  place.classList.remove("is-writing");
  place.querySelector(".waiting")?.remove();
  exchange.querySelector("[data-broken]").hidden = false;
  announce(BROKEN);
};

const remark = (exchange, text) => {
  const remark = document.createElement("p");
  remark.className = "remark";
  remark.textContent = text;
  exchange.querySelector("[data-notices]").append(remark);
};

const take = (exchange, draft, { name, data }) => {
  if (name === "text") {
    const follows = isAtEnd();
    draft.follows = follows;
    draft.add(data.text);
  } else if (name === "notice") {
    remark(exchange, data.text);
  } else if (name === "search") {
    const place = exchange.querySelector("[data-searched]");
    place.querySelector("q").textContent = data.searched;
    place.hidden = !data.searched;
    exchange.querySelector("[data-doing]").textContent = "Writing the answer";
  }
};

const stream = async (exchange) => {
  const draft = new Draft(exchange.querySelector("[data-text]"), () => draft.follows && toEnd());
  try {
    const response = await fetch(exchange.dataset.events, { headers: { Accept: "text/event-stream" } });
    for await (const event of eventsOf(response)) {
      take(exchange, draft, event);
    }
  } catch {
    // The stored answer says how it ended.
  } finally {
    draft.close();
  }
};

// Another window may be writing the answer, or a page that was left may still be stopping it: then it is looked at again.
const read = async (exchange) => {
  writing = exchange;
  settle();
  announce("Writing the answer.");
  try {
    await stream(exchange);
    let [state, pause, attempts] = [await finish(exchange), PAUSE_MS, 1];
    while (state) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(pause * 1.5, MAX_PAUSE_MS);
      if (state === "waiting") {
        if (attempts === MAX_ATTEMPTS) {
          throw new Error(BROKEN);
        }
        attempts += 1;
        await stream(exchange);
      }
      state = await finish(exchange);
    }
  } catch {
    breakOff(exchange);
  }
  writing = null;
  settle();
};

// A new conversation changes the page's address.
const move = (address) => {
  if (!address || address === window.location.pathname) {
    return;
  }
  window.history.pushState(null, "", address);
  composer.action = address;
};

const refreshHistory = async () => {
  const current = window.location.pathname.split("/").at(-2);
  const find = document.querySelector("[data-find]");
  find.setAttribute("hx-vals", JSON.stringify({ current }));
  await window.htmx?.ajax("GET", find.getAttribute("hx-get"), {
    target: "#conversations",
    values: { current, find: find.value, bar: 1 },
  });
  const title = document.querySelector(".chat-link[aria-current]")?.title;
  if (title) {
    document.querySelector("#chat-title").textContent = title;
    document.title = `${title} · CoreCube`;
  }
};

const fetched = async (address, body) => {
  const response = await loaded(address, { method: "POST", body });
  move(response.headers.get("HX-Push-Url"));
  return nodeOf(await response.text());
};

const ask = async (body) => {
  complain("");
  const text = question.value;
  question.value = "";
  grow();
  if (touch.matches) {
    // The keyboard would cover half of the answer.
    question.blur();
  }
  writing = thread;
  settle();
  try {
    const exchange = await fetched(composer.action, body);
    document.querySelector("[data-welcome]")?.remove();
    question.placeholder = question.dataset.followUp;
    thread.append(exchange);
    window.htmx?.process(exchange);
    toEnd(motion.matches ? "smooth" : "instant");
    refreshHistory();
    await read(exchange);
  } catch (error) {
    question.value ||= text;
    writing = null;
    complain(error instanceof TypeError ? "The server is unreachable. Your question is still in the input." : error.message);
    settle();
  }
};

const askAgain = async (form) => {
  const exchange = form.closest("[data-exchange]");
  complain("");
  try {
    const fresh = await fetched(form.action, new FormData(form));
    exchange.replaceWith(fresh);
    window.htmx?.process(fresh);
    await read(fresh);
  } catch (error) {
    complain(error instanceof TypeError ? "The server is unreachable." : error.message);
  }
};

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form === composer) {
    event.preventDefault();
    if (writing === null && (question.value.trim() || event.submitter?.name === "example")) {
      ask(new FormData(composer, event.submitter));
    }
  } else if ("again" in form.dataset) {
    event.preventDefault();
    if (writing === null) {
      askAgain(form);
    }
  }
});

// Enter sends; an input method's own Enter does not.
question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    if (!send.disabled) {
      composer.requestSubmit(send);
    }
  }
});

question.addEventListener("input", () => {
  settle();
  grow();
});

const stopWriting = async () => {
  const address = writing?.dataset.stopAddress;
  if (!address) {
    return;
  }
  stop.disabled = true;
  const token = composer.elements.csrfmiddlewaretoken.value;
  await fetch(address, { method: "POST", headers: { ...FRAGMENT, "X-CSRFToken": token } }).catch(() => {});
  stop.disabled = false;
  if (!touch.matches) {
    question.focus();
  }
};

stop.addEventListener("click", stopWriting);

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.defaultPrevented) {
    stopWriting();
  }
});

// Going back to a pushed address loads another page.
window.addEventListener("popstate", () => {
  if (composer.getAttribute("action") !== window.location.pathname) {
    window.location.reload();
  }
});

settle();
grow();
const unfinished = thread.querySelector("[data-events]");
if (unfinished) {
  read(unfinished);
} else if (thread.querySelector("[data-exchange]") && !window.location.hash) {
  toEnd();
}
