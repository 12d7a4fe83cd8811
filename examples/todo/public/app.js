// What the page does: commands go to the API as JSON, and the list comes from the server as HTML.

const $ = selector => document.querySelector(selector);

/** Sends a command; what went wrong is shown, and `undefined` given back. */
async function send(method, path, body) {
  const isForm = body instanceof FormData;
  const headers = { Accept: "application/json" }; // errors as application/problem+json
  if (body && !isForm) headers["Content-Type"] = "application/json";
  try {
    const response = await fetch(path, { method, headers, body: isForm ? body : body && JSON.stringify(body) });
    if (response.ok) {
      $("#error").textContent = "";
      return response;
    }
    const problem = await response.json();
    $("#error").textContent = problem.detail ?? problem.title;
  } catch {
    $("#error").textContent = "The server does not answer.";
  }
}

/** Takes the list out of the page as the server has it now. */
async function refresh() {
  const response = await fetch("/");
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const items = page.querySelector("#items");
  if (!items) return location.reload(); // signed out elsewhere
  // Nobody wants the text to be exchanged under the cursor.
  if (document.activeElement?.matches("#items [name=title]")) return;
  $("#items").replaceWith(items);
}

$("#account")?.addEventListener("submit", async event => {
  event.preventDefault();
  const account = Object.fromEntries(new FormData(event.target));
  if (await send("POST", event.submitter.value, account)) location.reload();
});

$("#sign-out")?.addEventListener("click", async () => {
  if (await send("POST", "/sign-out")) location.reload();
});

$("#add")?.addEventListener("submit", async event => {
  event.preventDefault();
  const title = event.target.title.value;
  if (await send("POST", "/api/items", { title })) event.target.reset();
});

// One listener for all items, also for those that come later.
document.addEventListener("change", async ({ target }) => {
  const path = pathOf(target);
  if (!path) return;
  let answer;
  if (target.name === "done") answer = await send("PATCH", path, { done: target.checked });
  if (target.name === "title") answer = await send("PATCH", path, { title: target.value });
  if (target.name === "file") {
    const form = new FormData();
    form.append("file", target.files[0]);
    answer = await send("POST", `${path}/attachments`, form);
  }
  if (!answer) refresh(); // what is shown did not happen
});

document.addEventListener("focusout", event => {
  if (event.target.matches("#items [name=title]")) setTimeout(refresh);
});

document.addEventListener("keydown", event => {
  if (event.key === "Enter" && event.target.matches("#items [name=title]")) event.target.blur();
});

document.addEventListener("click", ({ target }) => {
  if (target.name === "remove") send("DELETE", pathOf(target));
});

function pathOf(element) {
  const item = element.closest("#items li");
  return item && `/api/items/${item.dataset.id}`;
}

if ($("#items")) {
  const changes = new EventSource("/api/changes");
  const show = isLive => {
    $("#live").classList.toggle("on", isLive);
    $("#live").title = isLive ? "connected" : "not connected";
  };
  changes.onopen = () => {
    show(true);
    refresh(); // whatever was missed before
  };
  changes.onmessage = refresh;
  changes.onerror = () => show(false); // the browser connects again by itself
}
