import { closeSync, openSync } from 'node:fs';
import { processEnv, readFaults } from './config.ts';

const faults = readFaults(processEnv());

/**
 * A named gap between two durable effects, where a test may kill (or stop) the process. `POSTLINE_FAULT=<name>` picks
 * one; `POSTLINE_FAULT_ONCE=<file>` fires it once for all processes that share the file.
 */
export const faultPoint = (name: string): void => {
  if (faults.at !== name) return;
  if (faults.onceFile !== null) {
    try {
      closeSync(openSync(faults.onceFile, 'wx'));
    } catch {
      return;
    }
  }
  process.kill(process.pid, faults.signal);
};
