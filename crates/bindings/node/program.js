#!/usr/bin/env node
// Runs the program, which is in a package of its own for each platform.
"use strict";

const { spawnSync } = require("node:child_process");

const platform = `offcut-${process.platform}-${process.arch}`;
const program = process.platform === "win32" ? "offcut.exe" : "offcut";

let path;
try {
  path = require.resolve(`${platform}/${program}`);
} catch {
  console.error(
    `offcut: the package ${platform} is not installed. Reinstall without --omit=optional; if this platform has no package, ` +
      "build the program with `cargo install offcut-cli`.",
  );
  process.exit(1);
}

const ran = spawnSync(path, process.argv.slice(2), { stdio: "inherit" });
if (ran.error) {
  console.error(`offcut: ${path} can't be run: ${ran.error.message}`);
  process.exit(1);
}
if (ran.signal) process.kill(process.pid, ran.signal);
process.exit(ran.status ?? 1);
