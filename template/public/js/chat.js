// The page of the chat room. It says who it is when it connects, shows what comes, and connects again by
// itself when the connection is lost.

const FIRST_WAIT = 500; // milliseconds
const LONGEST_WAIT = 15_000;
const MOST_LINES = 500;

const element = (id) => document.getElementById(id);
const [lines, text, unread, hint] = ["lines", "text", "unread", "hint"].map(element);

let socket; // the connection, while there is one or one is being made
let name; // who this is, as was wished for
let known; // who this is, as the server says
let tries = 0;
let timer;
let room; // the room that the lines below are of
let last = 0; // the number of the last message that was shown

element("name").value = localStorage.getItem("chat-name") ?? "";

element("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  name = element("name").value.trim();
  if (!name) return;
  localStorage.setItem("chat-name", name);
  element("entry").hidden = true;
  element("room").hidden = false;
  text.focus();
  connect();
});

element("say").addEventListener("submit", (event) => {
  event.preventDefault();
  say();
});

text.addEventListener("keydown", (event) => {
  // Not the Enter that ends a word of an input method.
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    say();
  }
});

lines.addEventListener("scroll", () => {
  if (isAtEnd()) unread.hidden = true;
});
unread.addEventListener("click", scrollToEnd);

// Whoever comes back to the page, or to the network, need not wait for the next try.
addEventListener("online", retryNow);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) retryNow();
});

function connect() {
  clearTimeout(timer);
  show("wait", tries ? "Connecting again …" : "Connecting …");
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  socket = new WebSocket(`${scheme}://${location.host}/api/chat?name=${encodeURIComponent(name)}`);
  socket.addEventListener("message", (event) => take(JSON.parse(event.data)));
  socket.addEventListener("close", lost);
}

function lost() {
  socket = undefined;
  // Each try waits twice as long as the one before it, and not exactly, so that not all come at once.
  const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** tries) * (0.75 + Math.random() / 2);
  tries += 1;
  show("down", "Connection lost");
  element("people").textContent = "";
  timer = setTimeout(connect, wait);
}

function retryNow() {
  if (name && !socket) connect();
}

function say() {
  const words = text.value.trim();
  if (!words) return;
  if (socket?.readyState !== WebSocket.OPEN) {
    hint.textContent = "Not connected: it is kept here until it can be sent.";
    return;
  }
  socket.send(words);
  text.value = "";
  hint.textContent = "";
}

function take(news) {
  switch (news.kind) {
    case "hello":
      tries = 0;
      known = news.name;
      if (room !== news.room) [room, last] = [news.room, 0];
      hint.textContent = "";
      show("up", `You are ${known}`);
      count(news.people);
      break;
    case "said":
      // A page that comes back hears again what it has shown; the numbers of what it has not only rise.
      if (news.id <= last) break;
      last = news.id;
      add(said(news));
      break;
    case "joined":
    case "left":
      count(news.people);
      if (news.name !== known) add(item("news", `${news.name} ${news.kind}`));
      break;
    case "refused":
      hint.textContent = news.why;
      if (!text.value) text.value = news.text;
      break;
  }
}

function said({ name, text, at }) {
  const line = item(name === known ? "said mine" : "said", "");
  const who = document.createElement("b");
  who.textContent = name;
  const time = document.createElement("time");
  const when = new Date(at);
  time.dateTime = when.toISOString();
  time.textContent = when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  line.append(who, text, time);
  return line;
}

/** A line whose text is shown as it is: nothing that a stranger writes becomes HTML. */
function item(kind, words) {
  const line = document.createElement("li");
  line.className = kind;
  line.textContent = words;
  return line;
}

function add(line) {
  const follow = isAtEnd() || line.classList.contains("mine");
  lines.append(line);
  while (lines.children.length > MOST_LINES) lines.firstElementChild.remove();
  if (follow) scrollToEnd();
  else unread.hidden = false;
}

function isAtEnd() {
  return lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
}

function scrollToEnd() {
  lines.scrollTop = lines.scrollHeight;
  unread.hidden = true;
}

function count(people) {
  element("people").textContent = people === 1 ? "only you" : `${people} people`;
}

function show(state, words) {
  element("state").dataset.state = state;
  element("state").textContent = words;
}
