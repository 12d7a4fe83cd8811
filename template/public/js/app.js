// Sends the forms of the page with fetch and shows the answers. Without this file the forms still
// work: the browser then simply goes to the answer.

const WORTH_SHOWING = ["content-type", "content-length", "date", "server", "vary", "etag", "allow"];

const element = (id) => document.getElementById(id);
const stillness = window.matchMedia("(prefers-reduced-motion: reduce)");

for (const form of document.querySelectorAll("form")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    call(form);
  });
}

greet();

async function call(form) {
  const button = form.querySelector("button");
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  try {
    show(await ask(...requestOf(form)));
    bringIntoView(document.querySelector(".answer"));
  } finally {
    button.removeAttribute("aria-busy");
  }
}

/** What a form asks for: the address, and the options of fetch. */
function requestOf(form) {
  const fields = new URLSearchParams(new FormData(form));
  const headers = {};
  if (form.dataset.accept) headers.accept = form.dataset.accept;
  const action = form.getAttribute("action");
  if (form.method !== "post") {
    return [fields.size ? `${action}?${fields}` : action, { headers }];
  }
  switch (form.querySelector("[data-encoding]").value) {
    case "json":
      headers["content-type"] = "application/json";
      return [action, { method: "POST", headers, body: JSON.stringify(Object.fromEntries(fields)) }];
    case "text":
      headers["content-type"] = "text/plain; charset=utf-8";
      return [action, { method: "POST", headers, body: fields.get("message") }];
    default:
      return [action, { method: "POST", headers, body: fields }];
  }
}

/** Asks and measures: from the call to the last byte of the answer. */
async function ask(url, options = {}) {
  const method = options.method ?? "GET";
  const start = performance.now();
  try {
    const response = await fetch(url, { cache: "no-store", ...options });
    const body = await response.text();
    return { method, url, response, body, ms: performance.now() - start };
  } catch (error) {
    return { method, url, error };
  }
}

function show({ method, url, response, body, ms, error }) {
  element("asked").textContent = `${method} ${url}`;
  element("detail").hidden = Boolean(error);
  const summary = element("summary");
  if (error) {
    summary.replaceChildren(part("No answer", "bad"), "Is the server still running?");
  } else {
    summary.replaceChildren(
      part(`${response.status} ${response.statusText}`.trim(), response.ok ? "good" : "bad"),
      part(`${ms.toFixed(1)} ms`),
      `${new Blob([body]).size.toLocaleString("en")} bytes`,
    );
    showHeaders(response.headers);
    showBody(body, response.headers.get("content-type") ?? "");
  }
}

/** On a phone the answer is below the buttons. */
function bringIntoView(answer) {
  if (answer.getBoundingClientRect().top > innerHeight * 0.6) {
    answer.scrollIntoView({ behavior: stillness.matches ? "auto" : "smooth" });
  }
}

function showHeaders(headers) {
  const rows = WORTH_SHOWING.filter((name) => headers.has(name)).map((name) => {
    const row = document.createElement("tr");
    const title = document.createElement("th");
    title.scope = "row";
    title.textContent = name;
    row.append(title);
    row.insertCell().textContent = headers.get(name);
    return row;
  });
  element("headers").replaceChildren(...rows);
}

function showBody(body, type) {
  element("body").textContent = type.startsWith("application/json") ? pretty(body) : body;
  const preview = element("preview");
  preview.hidden = !(type.startsWith("text/html") && body.includes("<"));
  // The frame is sandboxed: it can run no script and reach nothing of this page.
  preview.srcdoc = preview.hidden ? "" : body;
}

function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

function part(text, kind) {
  const bold = document.createElement("b");
  bold.textContent = text;
  if (kind) bold.className = kind;
  return bold;
}

/** The first call warms the connection up, the second one is measured and shown. */
async function greet() {
  const url = "/api/tests/simple";
  await ask(url);
  const answer = await ask(url);
  const up = answer.response?.ok ?? false;
  const pulse = element("pulse");
  pulse.dataset.state = up ? "up" : "down";
  pulse.textContent = up ? `Server answers in ${answer.ms.toFixed(1)} ms` : "The server does not answer";
  show(answer);
}
