/**
 * Loaded before a process that must not outlive its parent, however the parent ends. Pass it by NODE_OPTIONS=--import.
 */
import { isMainThread } from 'node:worker_threads';

const parent = process.ppid;
const look = () => {
  if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL');
};
if (isMainThread) setInterval(look, 500).unref();
