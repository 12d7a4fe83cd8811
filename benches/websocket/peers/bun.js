// How does uWebSockets, which is Bun's server, do what the benchmark asks for? Arguments: a port, and `deflate` or `plain`.
const [port, coding] = process.argv.slice(2);
const compress = coding === "deflate";

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: Number(port),
  fetch(request, server) {
    const path = new URL(request.url).pathname;
    if (server.upgrade(request, { data: { path } })) return;
    return new Response("a WebSocket, please", { status: 426 });
  },
  websocket: {
    perMessageDeflate: compress,
    idleTimeout: 900,
    open(socket) {
      if (socket.data.path === "/room") socket.subscribe("all");
    },
    message(socket, message) {
      if (socket.data.path === "/publish") server.publish("all", message, compress);
      else socket.send(message);
    },
  },
});
