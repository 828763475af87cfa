import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { processEnv, readFaults } from './config.ts';

const faults = readFaults(processEnv());

/**
 * A named gap between two durable effects, where a test may kill (or stop) the process. `POSTLINE_FAULT=<name>,<name>`
 * picks some; `POSTLINE_FAULT_ONCE=<folder>` fires each once for all processes that share the folder.
 */
export const faultPoint = (name: string): void => {
  if (!faults.at.includes(name)) return;
  if (faults.onceDir !== null) {
    try {
      closeSync(openSync(path.join(faults.onceDir, encodeURIComponent(name)), 'wx'));
    } catch {
      return;
    }
  }
  process.kill(process.pid, faults.signal);
};
