// How does `ws` on Node.js do what the benchmark asks for? Arguments: a port, a folder `node_modules`, and `deflate` or `plain`.
"use strict";

const [port, modules, coding] = process.argv.slice(2);
const { WebSocketServer } = require(`${modules}/ws`);

// What its documentation proposes, but for the threshold, which is 1024 bytes by itself: messages here are shorter.
const compressed = {
  threshold: 0,
  serverNoContextTakeover: true,
  clientNoContextTakeover: true,
  serverMaxWindowBits: 10,
  concurrencyLimit: 10,
};

const server = new WebSocketServer({
  host: "127.0.0.1",
  port: Number(port),
  perMessageDeflate: coding === "deflate" ? compressed : false,
});
const room = new Set();

server.on("connection", (socket, request) => {
  socket.on("error", () => {});
  switch (request.url) {
    case "/room":
      room.add(socket);
      socket.on("close", () => room.delete(socket));
      break;
    case "/publish":
      socket.on("message", (data, binary) => {
        for (const other of room) other.send(data, { binary });
      });
      break;
    default:
      socket.on("message", (data, binary) => socket.send(data, { binary }));
  }
});
