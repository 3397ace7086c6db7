// Runs a command with the address of a small server in the variable URL of Postman.

import { spawn } from "node:child_process";
import { createServer } from "node:http";

const server = createServer((request, response) => {
  response.writeHead(request.url.startsWith("/missing") ? 404 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify({ path: request.url, text: "<&> ✓" }));
});
server.listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const [command, ...args] = process.argv.slice(2);
  const child = spawn(command, [...args, "--global-var", `URL=${url}`], { stdio: "inherit" });
  child.on("exit", (code) => process.exit(code));
});
